package binary_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/bench/internal/binary"
)

func TestEveryProgramIsLargerThanNone(t *testing.T) {
	t.Chdir("../..")
	all, err := binary.All(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 4)
	for _, p := range all {
		require.Greater(t, p.Adds, int64(10_000), p.Name)
		require.Less(t, p.Init, 1000.0, p.Name)
	}
	require.Positive(t, all[0].Init)
	require.Less(t, all[0].Adds, all[1].Adds, "a gate has a breaker")
}
