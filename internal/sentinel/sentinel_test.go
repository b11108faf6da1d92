package sentinel_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/sentinel"
)

func TestRefusalErrorsMatchErrRefusedAndThemselves(t *testing.T) {
	var open, full error = sentinel.RefusalError("breaker: open"), sentinel.RefusalError("limiter: queue is full")
	wrapped := fmt.Errorf("call payments: %w", open)
	require.EqualError(t, wrapped, "call payments: breaker: open")
	require.ErrorIs(t, wrapped, sentinel.ErrRefused)
	require.ErrorIs(t, wrapped, open)
	require.NotErrorIs(t, wrapped, full)
	require.NotErrorIs(t, sentinel.ErrRefused, open, "the general error is no special one")
	require.NotErrorIs(t, errors.New("weir: refused"), sentinel.ErrRefused)
}
