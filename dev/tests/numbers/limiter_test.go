package numbers

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

const perSecond = 200

// eachArrival calls f with the arrival times of n independent callers. load is their share of the
// rate.
func eachArrival(load float64, n int, f func(at time.Time)) {
	random, at := rand.New(rand.NewPCG(7, 11)), 0.0
	for range n {
		at += random.ExpFloat64() / (load * perSecond)
		f(t0.Add(time.Duration(at * float64(time.Second))))
	}
}

// refusalsTable returns the share of callers that a bucket refuses at a load below its rate.
func refusalsTable() string {
	table := headerRow("Burst", "80 % of the rate come", "90 %", "95 %")
	for _, burst := range []int{1, 5, 10, 20, 50} {
		cells := []any{burst}
		for _, load := range []float64{0.80, 0.90, 0.95} {
			cells = append(cells, refusedShare(load, burst))
		}
		table += row(cells...)
	}
	return table
}

func refusedShare(load float64, burst int) string {
	const n = 100_000
	b, refused := newBucket(burst), 0
	eachArrival(load, n, func(at time.Time) {
		if !b.TakeAt(at, 1).OK {
			refused++
		}
	})
	switch p := float64(refused) / n; {
	case p < 0.001:
		return "< 0.1 %"
	case p < 0.1:
		return fmt.Sprintf("%.1f %%", 100*p)
	default:
		return fmt.Sprintf("%.0f %%", 100*p)
	}
}

func newBucket(burst int) *limiter.TokenBucket {
	return limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(perSecond), Burst: burst})
}

// A limiter whose callers wait for up to w refuses the same calls as a limiter without a wait whose
// burst is larger by the tokens of w.
func TestAWaitRefusesLikeALargerBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wait, extra = 50 * time.Millisecond, 10 // the tokens of 50 ms
		began := time.Now()
		c := limiter.TokenBucketConfig{Rate: limiter.PerSecond(perSecond), Burst: 50}
		waits := limiter.NewTokenBucket(c)
		c.Burst += extra
		takes := limiter.NewTokenBucket(c)
		refused := 0
		eachArrival(1.1, 100_000, func(at time.Time) {
			time.Sleep(at.Sub(t0) - time.Since(began))
			ok := waits.Reserve(1, wait).OK
			require.Equal(t, takes.Take(1).OK, ok)
			if !ok {
				refused++
			}
		})
		require.Greater(t, refused, 5000)
	})
}

func TestMostTokensInASecond(t *testing.T) {
	b, allowed := newBucket(50), 0
	for n := range 1_000_000 {
		if b.TakeAt(t0.Add(time.Duration(n)*time.Microsecond), 1).OK {
			allowed++
		}
	}
	require.Equal(t, 50+perSecond-1, allowed, "the last token of the second comes at its end")
}
