package weir_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

func errorsAs[E error](err error) (e E, ok bool) {
	ok = errors.As(err, &e)
	return e, ok
}

// startWaiting starts n calls one after another, and returns when they have ended and how many were
// made.
func startWaiting(g *weir.Gate, n int) (wait func() (took []time.Duration, made int)) {
	var mu sync.Mutex
	var all sync.WaitGroup
	var took []time.Duration
	made, start := 0, time.Now()
	for range n {
		all.Go(func() {
			err := g.Run(bg(), succeed)
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(start))
			if err == nil {
				made++
			}
		})
		synctest.Wait()
	}
	return func() ([]time.Duration, int) {
		all.Wait()
		return took, made
	}
}

// Three calls wait for a token or a slot. The config changes after 500 ms.
func TestCallsThatWaitContinueWithTheNewConfig(t *testing.T) {
	const ms = time.Millisecond
	minute := weir.Config{Rate: limiter.PerMinute(1), MaxWait: time.Hour} // 1 token at once
	bound := weir.Config{MaxConcurrent: 1, MaxWait: time.Hour}
	for name, c := range map[string]struct {
		before, after weir.Config
		took          []time.Duration
		made          int
	}{
		"a higher rate": {
			minute,
			weir.Config{Rate: limiter.PerSecond(10), Burst: 1, MaxWait: time.Hour},
			// In the first half second, one token per minute gives 1/120 of a token. At the new
			// rate, the missing 119/120 of a token take 119/120 of 100 ms.
			[]time.Duration{500*ms + 100*ms*119/120, 600*ms + 100*ms*119/120, 700*ms + 100*ms*119/120},
			3,
		},
		"no rate":           {minute, weir.Config{}, []time.Duration{500 * ms, 500 * ms, 500 * ms}, 3},
		"a bound, no rate":  {minute, bound, []time.Duration{500 * ms, 500 * ms, 500 * ms}, 3},
		"a shorter MaxWait": {minute, weir.Config{Rate: limiter.PerMinute(1), MaxWait: 800 * ms}, []time.Duration{800 * ms, 800 * ms, 800 * ms}, 0},
		"no MaxWait":        {minute, weir.Config{Rate: limiter.PerMinute(1)}, []time.Duration{500 * ms, 500 * ms, 500 * ms}, 0},
		"a longer MaxWait": {
			weir.Config{Rate: limiter.PerSecond(1), MaxWait: 3 * time.Second},
			weir.Config{Rate: limiter.PerMinute(1), MaxWait: time.Hour},
			[]time.Duration{3000 * ms, 3000 * ms, 3000 * ms},
			0,
		},
		"a higher bound": {bound, weir.Config{MaxConcurrent: 3, MaxWait: time.Hour}, []time.Duration{500 * ms, 500 * ms, 500 * ms}, 3},
		"no bound":       {bound, weir.Config{}, []time.Duration{500 * ms, 500 * ms, 500 * ms}, 3},
		"a rate, no bound": {
			bound,
			weir.Config{Rate: limiter.PerSecond(10), Burst: 1, MaxWait: time.Hour},
			[]time.Duration{500 * ms, 600 * ms, 700 * ms},
			3,
		},
		"a rate, and a bound that is refused at once": {
			bound,
			weir.Config{Rate: limiter.PerSecond(10), MaxConcurrent: 1},
			[]time.Duration{500 * ms, 500 * ms, 500 * ms},
			0,
		},
		"an adaptive bound": {bound, weir.Config{MaxConcurrent: 4, Adaptive: true, MaxWait: time.Hour}, []time.Duration{500 * ms, 500 * ms, 500 * ms}, 3},
		"nothing": {
			weir.Config{MaxConcurrent: 1, MaxWait: time.Second},
			weir.Config{MaxConcurrent: 1, MaxWait: time.Second},
			[]time.Duration{1000 * ms, 1000 * ms, 1000 * ms},
			0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := weir.New("g", c.before)
				permit, err := g.Allow(bg()) // takes the token or the slot
				require.NoError(t, err)
				wait := startWaiting(g, 3)
				require.EqualValues(t, 3, g.Admissions().Waiting)
				time.Sleep(500 * ms)
				require.NoError(t, g.Reconfigure(c.after))
				took, made := wait()
				require.Equal(t, c.made, made)
				for i := range took {
					require.InDelta(t, c.took[i].Seconds(), took[i].Seconds(), 1e-6, "call %d", i)
				}
				require.Zero(t, g.Admissions().Waiting)
				permit.Record(breaker.Success)
			})
		})
	}
}

// MaxWait becomes short and long again: the call leaves when the short one is over.
func TestACallNeverWaitsLongerThanTheSmallestMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := weir.Config{Rate: limiter.PerMinute(1), MaxWait: time.Hour}
		short := weir.Config{Rate: limiter.PerMinute(1), MaxWait: 2 * time.Second}
		g := weir.New("g", long)
		require.NoError(t, g.Run(bg(), succeed))
		wait := startWaiting(g, 1)
		time.Sleep(time.Second)
		require.NoError(t, g.Reconfigure(short))
		require.NoError(t, g.Reconfigure(long))
		took, made := wait()
		require.Zero(t, made)
		require.Equal(t, []time.Duration{2 * time.Second}, took)
		require.EqualValues(t, 1, g.Admissions().Refused)
	})
}

// A call that waits for a slot has no token.
func TestACallThatWaitsAnewKeepsNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 5, MaxConcurrent: 1, MaxWait: time.Minute}
		g := weir.New("g", c)
		permit, err := g.Allow(bg())
		require.NoError(t, err)
		wait := startWaiting(g, 3)
		require.Equal(t, 4, g.Limiter().Take(0).Remaining)
		c.MaxConcurrent = 0
		require.NoError(t, g.Reconfigure(c))
		_, made := wait()
		require.Equal(t, 3, made)
		require.Equal(t, 1, g.Limiter().Take(0).Remaining, "each has taken one token")
		permit.Record(breaker.Success)
	})
}

func TestACallThatWaitsDuringAHoldAdoptsAShorterMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := weir.Config{Rate: limiter.PerSecond(100), MaxWait: time.Hour}
		g := weir.New("g", c)
		g.Hold(time.Minute)
		start := time.Now()
		var all sync.WaitGroup
		all.Go(func() {
			err := g.Run(bg(), succeed)
			limited, ok := errorsAs[*limiter.LimitedError](err)
			require.True(t, ok)
			require.Equal(t, limiter.Held, limited.Reason)
		})
		synctest.Wait()
		c.MaxWait = 10 * time.Second
		require.NoError(t, g.Reconfigure(c))
		all.Wait()
		require.Equal(t, 10*time.Second, time.Since(start))
	})
}

func TestACancelledCallLeavesAfterReconfigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{MaxConcurrent: 1, MaxWait: time.Hour})
		permit, err := g.Allow(bg())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(bg())
		var all sync.WaitGroup
		all.Go(func() { require.ErrorIs(t, g.Run(ctx, succeed), context.Canceled) })
		synctest.Wait()
		require.NoError(t, g.Reconfigure(weir.Config{Rate: limiter.Per(1, time.Hour), MaxConcurrent: 1, MaxWait: time.Hour}))
		synctest.Wait()
		require.EqualValues(t, 1, g.Admissions().Waiting)
		cancel()
		all.Wait()
		permit.Record(breaker.Success)
		require.Equal(t, 1, g.Limiter().Take(0).Remaining, "it gave the token back")
		require.Equal(t, limiter.Stats{Allowed: 1, Cancelled: 1}, g.Admissions())
	})
}
