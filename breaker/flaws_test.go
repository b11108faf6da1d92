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
	"github.com/weir-go/weir/window"
)

// Each test is named after a flaw of another breaker in wide use. The letters are those of the
// project's list of flaws.

// halfOpen returns a breaker whose cooldown is over.
func halfOpen(t *testing.T, c breaker.Config) *breaker.Breaker {
	t.Helper()
	b := breaker.New("b", c)
	open(t, b)
	time.Sleep(time.Until(b.StatsNow().Since.Add(either(c.Cooldown, 5*time.Second))))
	require.Equal(t, breaker.HalfOpen, b.State())
	return b
}

func either(d, zero time.Duration) time.Duration {
	if d == 0 {
		return zero
	}
	return d
}

// A: the breaker stays half-open forever, because a probe has no result.
func TestFlawA_ScenarioA29_ProbesWithoutAResultBlockNothing(t *testing.T) {
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
				b := halfOpen(t, breaker.Config{Probes: 2, ProbeTimeout: 10 * time.Second})
				for range 40 { // for a while the service is down, one way or another
					lose(b)
					time.Sleep(time.Second)
				}
				time.Sleep(20 * time.Second) // the last lease and the last cooldown
				for range 2 {
					require.NoError(t, b.Run(bg(), succeed))
				}
				require.Equal(t, breaker.Closed, b.State())
				time.Sleep(2 * time.Hour) // let what hangs come back
			})
		})
	}
}

// A, second part: with timeouts alone too many probes are made. At most Probes are in flight.
func TestFlawA_AtMostProbesAreInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := halfOpen(t, breaker.Config{Probes: 3, ProbeTimeout: 10 * time.Second})
		held := hold(t, b, 3)
		refused(t, b)
		time.Sleep(10*time.Second - 1)
		refused(t, b)
		time.Sleep(time.Nanosecond)
		hold(t, b, 3)
		refused(t, b)
		require.Equal(t, int64(3), b.StatsNow().Abandoned)
		require.ErrorIs(t, b.Check(), breaker.ErrOpen)
		// A probe whose slot was reused still counts, but releases no slot.
		require.True(t, held[0].Record(breaker.Ignored))
		refused(t, b)
	})
}

func TestNoMoreProbesAreMadeThanTheDecisionNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := halfOpen(t, breaker.Config{Probes: 3})
		run(t, b, 2, succeed)
		require.NoError(t, b.Check())
		last := hold(t, b, 1)
		refused(t, b)
		require.ErrorIs(t, b.Check(), breaker.ErrOpen)
		require.True(t, last[0].Record(breaker.Ignored), "no verdict: the place is free again")
		run(t, b, 1, succeed)
		require.Equal(t, breaker.Closed, b.State())
	})
}

func TestAServiceSlowerThanTheProbeTimeoutStillCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := halfOpen(t, breaker.Config{ProbeTimeout: time.Second})
		for range 10 {
			go func() { _ = b.Run(bg(), func(context.Context) error { time.Sleep(3 * time.Second); return nil }) }()
			time.Sleep(700 * time.Millisecond)
		}
		time.Sleep(3 * time.Second)
		require.Equal(t, breaker.Closed, b.State())
		require.Positive(t, b.StatsNow().Abandoned)
	})
}

// B: results of calls from before the opening change the breaker.
func TestFlawB_ScenarioA19_LateResultsChangeNothing(t *testing.T) {
	for _, late := range []breaker.Outcome{breaker.Success, breaker.Failure, breaker.Ignored} {
		t.Run(late.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var changes atomic.Int64
				b := breaker.New("b", breaker.Config{OnChange: func(breaker.Change) { changes.Add(1) }})
				early := hold(t, b, 12)
				open(t, b)
				until := time.Now().Add(5 * time.Second)

				for _, p := range early[:4] { // while open: neither closed nor prolonged
					require.False(t, p.Record(late))
				}
				require.Equal(t, breaker.Open, b.State())
				time.Sleep(time.Until(until))
				require.Equal(t, breaker.HalfOpen, b.State())

				probe := hold(t, b, 2) // while half-open: no verdict, no place freed or taken
				for _, p := range early[4:8] {
					require.False(t, p.Record(late))
				}
				require.Equal(t, breaker.HalfOpen, b.State())
				require.Zero(t, b.Counts().Calls())
				probe = append(probe, hold(t, b, 1)...)
				refused(t, b)
				for _, p := range probe {
					require.True(t, p.Record(breaker.Success))
				}
				require.Equal(t, breaker.Closed, b.State())

				for _, p := range early[8:] { // while closed again: no evidence
					require.False(t, p.Record(late))
				}
				require.Zero(t, b.Counts().Calls())
				require.Equal(t, int64(12), b.StatsNow().Late)
				require.Equal(t, int64(3), changes.Load())
			})
		})
	}
}

// C: calls slower than the window are never counted.
func TestFlawC_ScenarioA12_FailuresSlowerThanTheWindowStillTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{Window: time.Second})
		for range 20 {
			go func() {
				_ = b.Run(bg(), func(context.Context) error { time.Sleep(time.Minute); return errDown })
			}()
		}
		time.Sleep(time.Minute + 1)
		require.Equal(t, breaker.Open, b.State())
	})
}

// D: callbacks are called under a lock or out of order, or can crash the process.
func TestFlawD_ScenarioA40_CallbacksMayDoAnything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *breaker.Breaker
		var seen []breaker.State
		b = breaker.New("b", breaker.Config{Cooldown: breaker.Off, Probes: 1, OnChange: func(c breaker.Change) {
			seen = append(seen, c.To)
			_, _, _, _ = b.State(), b.Counts(), b.Totals(), b.StatsNow()
			for range b.Observe {
			}
			switch len(seen) {
			case 1:
				_ = b.Check()
				_ = b.Run(bg(), succeed) // half-open and closed again, from within
			case 4:
				panic("callback")
			case 5:
				runtime.Goexit()
			}
		}})
		open2 := func() {
			for range 20 {
				_ = b.Run(bg(), fail)
			}
		}
		open2()
		require.Equal(t, []breaker.State{breaker.Open, breaker.HalfOpen, breaker.Closed}, seen, "delivered in order, after the callback that caused them")

		open2() // panics in the callback: the caller sees nothing of it
		require.Len(t, seen, 4)
		require.Equal(t, int64(1), b.StatsNow().Dropped)

		var wg sync.WaitGroup
		wg.Go(func() { _ = b.Run(bg(), succeed) }) // two changes; the callback of the first ends the goroutine
		wg.Wait()
		require.Equal(t, breaker.HalfOpen, seen[4])
		time.Sleep(10 * time.Second) // the probe's place falls back
		require.NoError(t, b.Run(bg(), succeed))
		require.Equal(t, breaker.Closed, b.State())
		require.Equal(t, breaker.Closed, seen[len(seen)-1])
	})
}

// D: a callback that blocks delays only the caller that runs it. The queue is bounded, dropped changes are
// counted, and queued changes are delivered however the callback ends.
func TestFlawD_ABlockedCallbackBlocksNoOtherCaller(t *testing.T) {
	for name, c := range map[string]struct {
		end     func()
		dropped int64
	}{
		"returns":            {func() {}, 0},
		"panics":             {func() { panic("callback") }, 1},
		"ends its goroutine": {runtime.Goexit, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				var seqs []uint64
				b := breaker.New("b", breaker.Config{MinCalls: 1, Cooldown: breaker.Off, Probes: 1, OnChange: func(change breaker.Change) {
					seqs = append(seqs, change.Seq())
					if change.Seq() == 1 {
						<-release
						c.end()
					}
				}})
				go func() { _ = b.Run(bg(), fail) }()
				synctest.Wait()
				for range 60 { // three changes each
					require.NoError(t, b.Run(bg(), succeed))
					require.ErrorIs(t, b.Run(bg(), fail), errDown)
				}
				close(release)
				synctest.Wait()
				require.Len(t, seqs, 1+64)
				for i, seq := range seqs {
					require.Equal(t, uint64(i+1), seq, "in order")
				}
				require.Equal(t, 60*3-64+c.dropped, b.StatsNow().Dropped)
			})
		})
	}
}

// E: many calls pass when the cooldown ends.
func TestFlawE_NoStampedeWhenTheCooldownEnds(t *testing.T) {
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

// E: a probe is made while the breaker opens under load.
func TestFlawE_ScenarioA20A21_NoProbeWhileItOpens(t *testing.T) {
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
	require.Equal(t, int64(8*5000), b.Totals().Failures+b.Totals().Refused+b.StatsNow().Late, "one outcome a call")
}

// E: many calls that reach the threshold at once open the breaker once.
func TestFlawE_ItOpensOnce(t *testing.T) {
	for range 300 {
		var changes atomic.Int64
		b := breaker.New("b", breaker.Config{MinCalls: 2, Cooldown: time.Hour, OnChange: func(breaker.Change) { changes.Add(1) }})
		var ready, wg sync.WaitGroup
		ready.Add(8)
		for _, p := range hold(t, b, 8) {
			wg.Go(func() { ready.Done(); ready.Wait(); p.Record(breaker.Failure) })
		}
		wg.Wait()
		require.Equal(t, int64(1), changes.Load())
		require.Equal(t, int64(8), b.Totals().Failures+b.StatsNow().Late)
	}
}

// G: a permit that is used twice counts twice.
func TestFlawG_ScenarioA30_DoneCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := halfOpen(t, breaker.Config{Probes: 3})
		p, err := b.Allow()
		require.NoError(t, err)
		require.True(t, p.Record(breaker.Success))
		require.False(t, p.Record(breaker.Success))
		require.False(t, p.Record(breaker.Failure))
		require.Equal(t, breaker.HalfOpen, b.State())
		require.Equal(t, window.Counts{Successes: 1}, withoutStreak(b.Counts()))
		require.Zero(t, b.StatsNow().Late)

		var none breaker.Permit
		require.False(t, none.Record(breaker.Success))
		require.False(t, none.RecordAt(t0, breaker.Success))

		b = breaker.New("b", breaker.Config{})
		p, err = b.Allow()
		require.NoError(t, err)
		var counted atomic.Int64
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				if p.Record(breaker.Failure) {
					counted.Add(1)
				}
			})
		}
		wg.Wait()
		require.Equal(t, int64(1), counted.Load())
		require.Equal(t, int64(1), b.Counts().Failures)
	})
}

func withoutStreak(c window.Counts) window.Counts {
	c.ConsecutiveFailures = 0
	return c
}

// J: refusals are counted as results.
func TestFlawJ_ScenarioA22_RefusalsAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := breaker.New("inner", breaker.Config{Cooldown: time.Hour})
		outer := breaker.New("outer", breaker.Config{})
		open(t, inner)
		for range 100 {
			err := outer.Run(bg(), func(ctx context.Context) error { return inner.Run(ctx, succeed) })
			require.ErrorIs(t, err, breaker.ErrOpen)
		}
		require.Equal(t, breaker.Closed, outer.State())
		require.Equal(t, window.Counts{Ignored: 100}, outer.Counts())

		b := halfOpen(t, breaker.Config{Probes: 2})
		hold(t, b, 2)
		for range 100 {
			refused(t, b)
		}
		require.Equal(t, breaker.HalfOpen, b.State())
		require.Zero(t, b.Counts().Calls())
		require.Equal(t, int64(100), b.Counts().Refused)
	})
}

// S: a service that hangs until its callers' deadlines never opens the breaker.
func TestFlawS_ScenarioA35_DeadlinesAreFailuresAndCancellingIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		b := breaker.New("b", breaker.Config{})
		for range 50 {
			ctx, cancel := context.WithCancel(bg())
			time.AfterFunc(time.Millisecond, cancel)
			require.ErrorIs(t, b.Run(ctx, hang), context.Canceled)
		}
		require.Equal(t, breaker.Closed, b.State())
		require.Equal(t, window.Counts{Ignored: 50}, b.Counts())
		for range 20 {
			ctx, cancel := context.WithTimeout(bg(), time.Millisecond)
			require.ErrorIs(t, b.Run(ctx, hang), context.DeadlineExceeded)
			cancel()
		}
		require.Equal(t, breaker.Open, b.State())
	})
}

// S: a probe that its caller cancels decides nothing and releases its slot.
func TestFlawS_ACancelledProbeDecidesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := halfOpen(t, breaker.Config{Probes: 1})
		for range 5 {
			ctx, cancel := context.WithCancel(bg())
			err := b.Run(ctx, func(ctx context.Context) error { cancel(); <-ctx.Done(); return ctx.Err() })
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, breaker.HalfOpen, b.State())
		}
		require.NoError(t, b.Run(bg(), succeed))
		require.Equal(t, breaker.Closed, b.State())
	})
}

func TestScenarioA36_PanicIsAFailureAndPropagates(t *testing.T) {
	b := breaker.New("b", breaker.Config{})
	boom := &struct{ n int }{7}
	require.PanicsWithValue(t, boom, func() { _ = b.Run(bg(), func(context.Context) error { panic(boom) }) })
	require.PanicsWithValue(t, boom, func() {
		_, _ = breaker.Do(bg(), b, func(context.Context) (int, error) { panic(boom) })
	})
	var wg sync.WaitGroup
	wg.Go(func() { _ = b.Run(bg(), func(context.Context) error { runtime.Goexit(); return nil }) })
	wg.Wait()
	require.Equal(t, int64(3), b.Counts().Failures)
}
