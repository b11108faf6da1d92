package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEveryRequestIsCountedOnce(t *testing.T) {
	for _, g := range guards() {
		h, err := g.wrap(newBackend())
		require.NoError(t, err, g.name)
		r, err := attack(t.Context(), h, settings{factor: 3, length: 300 * time.Millisecond, timeout: time.Second})
		require.NoError(t, err, g.name)
		require.Positive(t, r.good(), g.name)
		offered := r.good() + r.refused + r.failed
		require.InDelta(t, 3*capacity*0.3, offered, 150, g.name)
		require.LessOrEqual(t, r.quantile(0.5), r.quantile(0.99), g.name)
	}
}

func TestAServerWithoutAGuardRefusesNothing(t *testing.T) {
	r, err := attack(t.Context(), newBackend(), settings{factor: 0.2, length: 300 * time.Millisecond, timeout: 10 * time.Second})
	require.NoError(t, err)
	require.Zero(t, r.refused+r.failed)
}

func TestTheTableHasARowPerGuard(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run([]string{"-for", "50ms", "-warm", "0"}, &out))
	require.Equal(t, 4+len(guards()), strings.Count(out.String(), "\n"))
	require.ErrorContains(t, run([]string{"-factor", "NaN"}, &out), "must be positive")
	require.ErrorContains(t, run([]string{"-for", "-1s"}, &out), "must be positive")
	require.ErrorContains(t, run([]string{"-warm", "-1s"}, &out), "must be positive")
}
