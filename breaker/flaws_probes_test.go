package breaker_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// Each test of the files flaws_*_test.go is about something that another breaker in wide use does
// wrong.

// newHalfOpen returns a breaker whose cooldown is over.
func newHalfOpen(t *testing.T, c breaker.Config) *breaker.Breaker {
	t.Helper()
	b := breaker.New("b", c)
	open(t, b)
	time.Sleep(time.Until(b.StatsNow().Since.Add(durationOr(c.Cooldown, 5*time.Second))))
	require.Equal(t, breaker.HalfOpen, b.State())
	return b
}

func durationOr(d, zero time.Duration) time.Duration {
	if d == 0 {
		return zero
	}
	return d
}

// Another breaker stays half-open forever if a probe has no result.
func TestScenarioA29_ProbesWithoutAResultBlockNothing(t *testing.T) {
	lost := map[string]func(b *breaker.Breaker){
		"a panic": func(b *breaker.Breaker) {
			defer func() { _ = recover() }()
			_ = b.Run(bg(), func(context.Context) error { panic("boom") })
		},
		"the end of its goroutine": func(b *breaker.Breaker) {
			var wg sync.WaitGroup
			wg.Go(func() { _ = b.Run(bg(), func(context.Context) error { runtime.Goexit(); return nil }) })
			wg.Wait()
		},
		"a forgotten permit": func(b *breaker.Breaker) { _, _ = b.Allow() },
		"a call that hangs": func(b *breaker.Breaker) {
			go func() { _ = b.Run(bg(), func(context.Context) error { time.Sleep(time.Hour); return nil }) }()
			synctest.Wait()
		},
		"a verdict that is none": func(b *breaker.Breaker) {
			p, err := b.Allow()
			if err == nil {
				p.Record(breaker.Ignored)
			}
		},
	}
	for name, lose := range lost {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newHalfOpen(t, breaker.Config{Recovery: breaker.Off, Probes: 2, ProbeTimeout: 10 * time.Second})
				for range 40 { // for a while the service is down, one way or another
					lose(b)
					time.Sleep(time.Second)
				}
				time.Sleep(20 * time.Second) // the last ProbeTimeout and the last cooldown
				for range 2 {
					require.NoError(t, b.Run(bg(), succeed))
				}
				require.Equal(t, breaker.Closed, b.State())
				time.Sleep(2 * time.Hour) // let the calls that hang return
			})
		})
	}
}

// Other breakers make too many probes if timeouts alone release the slots. Here at most
// Config.Probes are in flight.
func TestAtMostProbesAreInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHalfOpen(t, breaker.Config{Probes: 3, ProbeTimeout: 10 * time.Second})
		held := holdPermits(t, b, 3)
		requireRefused(t, b)
		time.Sleep(10*time.Second - 1)
		requireRefused(t, b)
		time.Sleep(time.Nanosecond)
		holdPermits(t, b, 3)
		requireRefused(t, b)
		require.Equal(t, int64(3), b.StatsNow().Abandoned)
		require.ErrorIs(t, b.Check(), breaker.ErrOpen)
		// A probe whose slot was reused still counts, but releases no slot.
		require.True(t, held[0].Record(breaker.Ignored))
		requireRefused(t, b)
	})
}

func TestNoMoreProbesAreMadeThanTheDecisionNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHalfOpen(t, breaker.Config{Recovery: breaker.Off, Probes: 3})
		run(t, b, 2, succeed)
		require.NoError(t, b.Check())
		last := holdPermits(t, b, 1)
		requireRefused(t, b)
		require.ErrorIs(t, b.Check(), breaker.ErrOpen)
		require.True(t, last[0].Record(breaker.Ignored), "no verdict: the place is free again")
		run(t, b, 1, succeed)
		require.Equal(t, breaker.Closed, b.State())
	})
}

func TestAServiceSlowerThanTheProbeTimeoutStillCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHalfOpen(t, breaker.Config{Recovery: breaker.Off, ProbeTimeout: time.Second})
		for range 10 {
			go func() { _ = b.Run(bg(), func(context.Context) error { time.Sleep(3 * time.Second); return nil }) }()
			time.Sleep(700 * time.Millisecond)
		}
		time.Sleep(3 * time.Second)
		require.Equal(t, breaker.Closed, b.State())
		require.Positive(t, b.StatsNow().Abandoned)
	})
}

// In other breakers many calls pass when the cooldown ends.
func TestNoStampedeWhenTheCooldownEnds(t *testing.T) {
	for range 200 {
		b := breaker.New("b", breaker.Config{MinCalls: 1, Cooldown: breaker.Off, Probes: 3})
		run(t, b, 1, fail)
		var passed, refused, running, most atomic.Int64
		release := make(chan struct{})
		var started, ended sync.WaitGroup
		started.Add(100)
		for range 100 {
			ended.Go(func() {
				started.Done()
				started.Wait()
				err := b.Run(bg(), func(context.Context) error {
					if n := running.Add(1); n > most.Load() {
						most.Store(n)
					}
					passed.Add(1)
					<-release
					return nil
				})
				if err != nil {
					if refused.Add(1) == 97 {
						close(release)
					}
				}
			})
		}
		ended.Wait()
		require.Equal(t, int64(3), passed.Load())
		require.Equal(t, int64(97), refused.Load())
		require.Equal(t, int64(97), b.Totals().Refused, "each refusal is counted once")
		require.LessOrEqual(t, most.Load(), int64(3))
		require.Equal(t, int64(3), b.Totals().Successes+b.StatsNow().Late)
	}
}

// In another breaker a probe is made while the breaker opens under load.
func TestScenarioA20A21_NoProbeWhileItOpens(t *testing.T) {
	b := breaker.New("b", breaker.Config{Cooldown: time.Hour})
	var wg sync.WaitGroup
	var afterOpen atomic.Int64
	for range 8 {
		wg.Go(func() {
			for range 5000 {
				wasOpen := b.Tripped()
				err := b.Run(bg(), fail)
				if wasOpen && err == errDown { //nolint:errorlint // the very error
					afterOpen.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.Zero(t, afterOpen.Load())
	require.Equal(t, breaker.Open, b.State())
	require.Zero(t, b.Totals().Successes)
	require.Equal(t, int64(8*5000), b.Totals().Failures+b.Totals().Refused+b.StatsNow().Late, "one outcome per call")
}

// Many calls that reach the threshold at once open the breaker once.
func TestItOpensOnce(t *testing.T) {
	for range 300 {
		var changes atomic.Int64
		b := breaker.New("b", breaker.Config{MinCalls: 2, Cooldown: time.Hour, OnChange: func(breaker.Change) { changes.Add(1) }})
		var ready, wg sync.WaitGroup
		ready.Add(8)
		for _, p := range holdPermits(t, b, 8) {
			wg.Go(func() { ready.Done(); ready.Wait(); p.Record(breaker.Failure) })
		}
		wg.Wait()
		require.Equal(t, int64(1), changes.Load())
		require.Equal(t, int64(8), b.Totals().Failures+b.StatsNow().Late)
	}
}
