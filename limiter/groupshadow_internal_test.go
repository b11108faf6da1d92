package limiter

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestUnpaidTokensDoNotOverflow records further tokens for a key whose sum is near the largest one.
// A negative sum would let a refund give back tokens that were never taken.
func TestUnpaidTokensDoNotOverflow(t *testing.T) {
	g := NewGroup(GroupConfig[string]{Rate: Per(1, time.Hour), Burst: 1, Name: "signups", Shadow: true})
	g.recordUnpaid("a", 1, false)
	s := g.shardOf(g.hash("a"))
	s.unpaid["a"] = math.MaxInt64 - 1

	g.recordUnpaid("a", math.MaxInt32, false)

	require.Positive(t, s.unpaid["a"])
	require.Zero(t, g.refundableOf("a", 100))
}
