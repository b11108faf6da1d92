package ring_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/ring"
)

func TestDueAfterAGapLongerThanTheRing(t *testing.T) {
	r := ring.New(10, 3, 1)
	r.Advance(1000, []int64{1})
	require.False(t, r.Due(10_009))
	require.True(t, r.Due(10_010))
}
