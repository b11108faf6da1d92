package weir_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

func TestMaxOpenBoundsTheGatesThatRefuse(t *testing.T) {
	g := weir.NewGroup[int]("g", weir.GroupConfig{MaxOpen: 0.3, Gate: weir.Config{Breaker: breaker.Config{MinCalls: 1}}})
	for key := range 10 {
		g.Get(key)
	}
	failAll := func() (refused int) {
		for _, gate := range g.All() {
			if errors.Is(gate.Run(t.Context(), func(context.Context) error { return errors.New("no route to host") }), breaker.ErrOpen) {
				refused++
			}
		}
		return refused
	}
	require.Zero(t, failAll())
	require.Equal(t, 3, failAll())
	require.NoError(t, g.SetMaxOpen(0.5))
	require.Equal(t, 3, failAll())
	require.Equal(t, 5, failAll())
	require.EqualError(t, g.SetMaxOpen(2), "breaker: MaxOpen is 2, must lie between 0 and 1")
	require.ErrorContains(t, weir.GroupConfig{MaxOpen: -1}.Validate(), "MaxOpen is -1")
}
