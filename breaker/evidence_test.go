package breaker_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

func TestImpossibleSharedCountsOpenNothing(t *testing.T) {
	for _, e := range []window.Counts{
		{Successes: 100, Failures: -1},
		{Successes: -100, Failures: -100, Slow: -100},
		{Successes: 100, Slow: -1, SlowFailures: 50},
		{Successes: math.MinInt64, Failures: math.MinInt64, Slow: math.MinInt64},
		{Successes: math.MaxInt64, Failures: math.MinInt64},
		{Successes: 100, Failures: math.MinInt64, Ignored: math.MaxInt64, Refused: math.MaxInt64},
	} {
		var told recorder
		b := breaker.New("b", told.attachTo(breaker.Config{SlowCall: time.Hour, SharedCounts: func() window.Counts { return e }}))
		require.NoError(t, b.Run(bg(), succeed))
		require.Empty(t, told.changes(), "%+v", e)
	}
}

func TestHugeSharedCountsAreJudged(t *testing.T) {
	for name, c := range map[string]struct {
		evidence window.Counts
		reason   string
	}{
		"all it can say": {
			window.Counts{Successes: math.MaxInt64, Failures: math.MaxInt64},
			"failure rate 50% of 9223372036854775806 calls, limit 50%, by shared counts",
		},
		"more slow calls than calls": {
			window.Counts{Successes: 100, Failures: -7, Slow: math.MaxInt64},
			"slow rate 100% of 100 calls, limit 50%, by shared counts",
		},
	} {
		var told recorder
		b := breaker.New("b", told.attachTo(breaker.Config{SlowCall: time.Hour, SharedCounts: func() window.Counts { return c.evidence }}))
		require.NoError(t, b.Run(bg(), succeed))
		require.Len(t, told.changes(), 1, name)
		require.Equal(t, c.reason, told.changes()[0].Reason, name)
	}
}
