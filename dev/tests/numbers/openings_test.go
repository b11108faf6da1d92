package numbers

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// openings returns how often a default breaker opens while closed in n calls of which a share
// fails, each by itself. The calls come at random times of a bubble.
func openings(share, perSecond float64, n int) (times int) {
	b := breaker.New("b", breaker.Config{OnChange: func(c breaker.Change) {
		if c.From == breaker.Closed {
			times++
		}
	}})
	r := rand.New(rand.NewPCG(1, 2))
	for range n {
		time.Sleep(time.Duration(r.ExpFloat64() / perSecond * float64(time.Second)))
		permit, err := b.Allow()
		if err != nil {
			continue
		}
		o := breaker.Success
		if r.Float64() < share {
			o = breaker.Failure
		}
		permit.Record(context.Background(), nil, o)
	}
	return times
}

// openingsTable returns how often the real breaker opens in a million calls by chance.
func openingsTable() string {
	shares := []float64{0.1, 0.2, 0.3, 0.4}
	table := headerRow("calls per second", "10 % fail", "20 %", "30 %", "40 %")
	for _, perSecond := range []float64{0.1, 1, 3, 10, 100} {
		cells := []any{perSecond}
		for _, share := range shares {
			cells = append(cells, openings(share, perSecond, 1_000_000))
		}
		table += row(cells...)
	}
	return table
}

// The rate and the run open a breaker together more often than the run alone.
func TestFailuresBelowFailureRateSeldomOpenABusyBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, share := range []float64{0.1, 0.2, 0.3} {
			require.LessOrEqual(t, openings(share, 100, 1_000_000), 2, "%v", share)
		}
		require.Positive(t, openings(0.3, 3, 100_000), "20 calls are few")
	})
}
