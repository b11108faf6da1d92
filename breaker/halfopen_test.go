package breaker_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// requireAllowed requires that a call passes at the time given, in milliseconds after t0.
func requireAllowed(t *testing.T, b *breaker.Breaker, at int) *breaker.Permit {
	t.Helper()
	p, err := b.AllowAt(modelTimeAt(at))
	require.NoError(t, err, "at %d ms", at)
	return &p
}

func TestOneCallPerMinuteFindsABreakerHalfOpen(t *testing.T) {
	c := breaker.Config{ConsecutiveFailures: 3, Cooldown: 5 * time.Second, HalfOpenTimeout: 10 * time.Second, Probes: 1}
	well, down := breaker.NewAt("b", c, t0), breaker.NewAt("b", c, t0)
	for minute := range 1440 {
		at := minute*60_000 + minute*37%6000 // at no round second
		requireAllowed(t, down, at).RecordAt(modelTimeAt(at), breaker.Failure)
		o := breaker.Success
		if minute < 3 {
			o = breaker.Failure // three bad minutes, and only successes afterwards
		}
		requireAllowed(t, well, at).RecordAt(modelTimeAt(at), o)
	}
	require.Equal(t, breaker.Closed, well.StateAt(modelTimeAt(1440*60_000)))
	require.True(t, down.Tripped())
}

func TestTheHalfOpenTimeoutRunsFromTheFirstProbe(t *testing.T) {
	c := breaker.Config{MinCalls: 1, Cooldown: 5 * time.Second, HalfOpenTimeout: time.Second, Probes: 2, ProbeTimeout: time.Minute}
	b := breaker.NewAt("b", c, t0)
	requireAllowed(t, b, 0).RecordAt(t0, breaker.Failure)
	const hour = 3_600_000
	require.Equal(t, breaker.HalfOpen, b.StateAt(modelTimeAt(hour)), "there was no call")
	requireAllowed(t, b, hour)
	requireAllowed(t, b, hour+900) // does not start the timeout again
	err := modelMakeCall(b, hour+999, breaker.Success)
	var e *breaker.OpenError
	require.ErrorAs(t, err, &e)
	require.Equal(t, breaker.HalfOpen, e.State)
	require.Equal(t, modelTimeAt(hour+6000), e.Until, "it gives up, and cools down, before a slot is free again")
	require.Equal(t, breaker.HalfOpen, b.StateAt(modelTimeAt(hour+1000).Add(-1)))
	require.Equal(t, breaker.Open, b.StateAt(modelTimeAt(hour+1000)))
	require.ErrorIs(t, modelMakeCall(b, hour+5999, breaker.Success), breaker.ErrOpen)
	require.NoError(t, modelMakeCall(b, 2*hour, breaker.Success), "half-open again until the next call")
}

func TestAReleasedHalfOpenBreakerWaitsForAProbe(t *testing.T) {
	c := breaker.Config{MinCalls: 1, Cooldown: 100 * ms, HalfOpenTimeout: 500 * ms}
	b := breaker.NewAt("b", c, t0)
	requireAllowed(t, b, 0).RecordAt(t0, breaker.Failure)
	requireAllowed(t, b, 100)
	b.ForceAt(modelTimeAt(200), breaker.Disabled, "")
	b.ReleaseAt(modelTimeAt(300))
	require.Equal(t, breaker.HalfOpen, b.StateAt(modelTimeAt(650)), "the probe of before began no round of its own")
	require.Equal(t, breaker.HalfOpen, b.StateAt(modelTimeAt(60_000)))
	requireAllowed(t, b, 60_000)
	require.Equal(t, breaker.Open, b.StateAt(modelTimeAt(60_500)))
}

func TestANewHalfOpenTimeoutRunsFromTheNextProbe(t *testing.T) {
	for name, override := range map[string]func(b *breaker.Breaker, end bool){
		"half-open": func(*breaker.Breaker, bool) {},
		"under an override": func(b *breaker.Breaker, end bool) {
			if end {
				b.ReleaseAt(modelTimeAt(200))
			} else {
				b.ForceAt(modelTimeAt(110), breaker.Disabled, "")
			}
		},
	} {
		c := breaker.Config{MinCalls: 1, Cooldown: 100 * ms}
		b := breaker.NewAt("b", c, t0)
		requireAllowed(t, b, 0).RecordAt(t0, breaker.Failure)
		requireAllowed(t, b, 100)
		override(b, false)
		c.HalfOpenTimeout = 50 * ms
		require.NoError(t, b.ReconfigureAt(modelTimeAt(200), c))
		override(b, true)
		require.Equal(t, breaker.HalfOpen, b.StateAt(modelTimeAt(9_000)), name)
		requireAllowed(t, b, 9_000)
		c.HalfOpenTimeout = 0
		require.NoError(t, b.ReconfigureAt(modelTimeAt(9_001), c))
		require.Equal(t, breaker.HalfOpen, b.StateAt(modelTimeAt(9_100)), "%s: it never gives up now", name)
	}
}

func TestHalfOpenTimeoutRespectsRetryAfter(t *testing.T) {
	c := breaker.Config{MinCalls: 1, Cooldown: 100 * ms, CooldownJitter: breaker.Off, HalfOpenTimeout: 50 * ms}
	b := breaker.NewAt("b", c, t0)
	requireAllowed(t, b, 0).RecordAt(t0, breaker.Failure)
	p := requireAllowed(t, b, 100)
	p.SetRetryAfter(10 * time.Second)
	require.True(t, p.RecordAt(modelTimeAt(100), breaker.Ignored))
	require.ErrorIs(t, modelMakeCall(b, 10_099, breaker.Success), breaker.ErrOpen)
	require.NoError(t, modelMakeCall(b, 10_100, breaker.Success))
}

// probesAllowedNow counts the probes that a half-open breaker allows at t0.
func probesAllowedNow(b *breaker.Breaker) (n int) {
	for ; n < 100; n++ {
		if _, err := b.AllowAt(t0); err != nil {
			return n
		}
	}
	return n
}

func TestReconfigureNeverAllowsMoreProbesThanProbes(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, MinCalls: 10, Probes: 3, ProbeTimeout: time.Second}
	b := breaker.NewAt("b", c, t0)
	b.OpenForAt(t0, 0)
	set := func(probes int) {
		c.Probes = probes
		require.NoError(t, b.ReconfigureAt(t0, c))
	}
	require.Equal(t, 3, probesAllowedNow(b))
	for range 5 {
		set(1)
		require.Zero(t, probesAllowedNow(b))
		err := b.CheckAt(t0)
		var e *breaker.OpenError
		require.ErrorAs(t, err, &e)
		require.Equal(t, t0.Add(time.Second), e.Until)
		set(3)
		require.Zero(t, probesAllowedNow(b))
	}
	set(5)
	require.Equal(t, 2, probesAllowedNow(b))
	set(2)
	require.NoError(t, modelMakeCall(b, 1000, breaker.Success), "all five are unheard of, and their places free")
	require.NoError(t, modelMakeCall(b, 1000, breaker.Success))
	require.Equal(t, breaker.Closed, b.StateAt(modelTimeAt(1000)))
}

func TestACooldownOfZeroStaysZeroWithAnyFactor(t *testing.T) {
	b := breaker.NewAt("b", breaker.Config{MinCalls: 1, Probes: 1, Cooldown: breaker.Off, CooldownFactor: 100}, t0)
	for at := range 400 { // 100 to the power of 400 is more than a float64 can hold
		require.NoError(t, modelMakeCall(b, at, breaker.Failure), "round %d", at)
	}
}

// Scenarios A25 to A27.
func TestProbesAndTheirVerdict(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, MinCalls: 5, Probes: 3, Cooldown: 5 * time.Second}
	runScript(t, c, "0 EEEEE ..... open", "5 AAAS ...r half_open", "5 ggg ... closed")
	runScript(t, c, "0 EEEEE ..... open", "5 AAAS ...r half_open", "5 gbb ... open")
	c.FailureRate, c.ConsecutiveFailures = breaker.Off, 5
	runScript(t, c, "0 EEEEE ..... open", "5 SSE ... open") // the first failed probe opens it
}

// Scenario A28.
func TestIgnoredProbesWithoutEndDecideNothing(t *testing.T) {
	s := runScript(t, breaker.Config{Recovery: breaker.Off, MinCalls: 5, Probes: 2}, "0 EEEEE ..... open")
	for range 100 {
		s.do("5 I . half_open -1 0 0 0 0")
	}
	s.do("5 SS .. closed")
}

// Scenario A31.
func TestCheckHoldsNothing(t *testing.T) {
	b := breaker.New("b", breaker.Config{Recovery: breaker.Off, MinCalls: 1, Probes: 1, Cooldown: breaker.Off})
	run(t, b, 1, fail)
	for range 10 {
		require.NoError(t, b.Check(), "looking takes nothing")
	}
	run(t, b, 1, succeed)
	require.Equal(t, breaker.Closed, b.State())
}

// Scenario A32.
// A service that answers "bad request" works. Classify decides whether such an answer closes a
// half-open breaker, and Accept makes it a success.
func TestClassifyDecidesWhetherABadRequestCloses(t *testing.T) {
	errBadRequest := errors.New("bad request")
	for _, c := range []struct {
		classify func(error) breaker.Outcome
		want     breaker.State
	}{
		{breaker.Accept(errBadRequest), breaker.Closed},
		{breaker.Ignore(errBadRequest), breaker.HalfOpen},
		{breaker.DefaultClassify, breaker.Open},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newHalfOpen(t, breaker.Config{Recovery: breaker.Off, Probes: 1, Classify: c.classify})
			run(t, b, 1, failWith(errBadRequest))
			require.Equal(t, c.want, b.State())
		})
	}
}

// Scenarios B09 to B11.
func TestAtMostFourProbesAreInFlight(t *testing.T) {
	s := runScript(t, configWithoutSlow(), "0 EEEEE ..... open", "5 AAAASS ....rr half_open -1 0 0 0 2")
	s.b.OpenForAt(s.now, 0)
	s.do("5 AAAAS ....r half_open -1 0 0 0 1") // four new probes
	s.held = s.held[4:]
	// one slot is released, so the next probe passes
	s.do("5 S r half_open", "5 i . half_open", "5 A . half_open")
}

// Scenario B12.
func TestProbesThatFailOpen(t *testing.T) {
	runScript(t, configWithoutSlow(), "0 EEEEE ..... open", "5 EES ... half_open", "5 E . open 75 1 4 3 0")
}

// Scenario B13.
func TestProbesThatAreSlowOpen(t *testing.T) {
	s := runScript(t, scenarioConfig(), "0 EEEEE ..... open", "5 sss ... half_open", "5 S . open 0 4 4 0 0")
	s.requireSlow(3)
}

// Scenario B14.
func TestProbesThatSucceedClose(t *testing.T) {
	runScript(t, configWithoutSlow(), "0 EEEEE ..... open", "5 ESSS .... closed -1 0 0 0 0", "5 S . closed -1 1 1 0 0")
}

// Scenarios B15 and B16.
func TestIgnoredProbesDoNotCount(t *testing.T) {
	runScript(t, configWithoutSlow(), "0 EEEEE ..... open", "5 SSS ... half_open -1 3 3 0 0", "5 I . half_open -1 3 3 0 0", "5 E . closed")
	runScript(t, configWithoutSlow(),
		"0 EEEEE ..... open", "5 IIII .... half_open -1 0 0 0 0", "5 SSS ... half_open -1 3 3 0 0", "5 S . closed")
}

// Scenario B27.
func TestHalfOpenWithoutAVerdictOpensAgain(t *testing.T) {
	c := configWithoutSlow()
	c.HalfOpenTimeout = time.Second
	// there is no call
	s := runScript(t, c, "0 EEEEE ..... open", "5.5 - - half_open", "3600 - - half_open")
	s.do("3600 A . half_open", "3600.999 - - half_open", "3601 - - open", "3605.999 S r open 100 0 5 5 1", "3606.2 SSS ... half_open", "3606.9 S . closed")
	var at []time.Duration
	for _, change := range s.told.changes() {
		at = append(at, change.At.Sub(t0))
	}
	require.Equal(t, []time.Duration{0, secondsOf(5), secondsOf(3601), secondsOf(3606), secondsOf(3606.9)}, at)
	s = runScript(t, c, "0 EEEEE ..... open", "5.5 A . half_open", "6.5 - - open", "11.5 - - half_open", "11.6 g ! half_open")
	require.Equal(t, []breaker.State{breaker.Open, breaker.HalfOpen, breaker.Open, breaker.HalfOpen}, s.changes())
	// another round
	runScript(t, c, "0 EEEEE ..... open", "5.5 SE .. half_open -1 1 2 1 0", "11.5 - - half_open -1 0 0 0 0")
}

// Scenario B30.
func TestHalfOpenNeedsNoTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a timer left would keep the bubble's clock going
		b := breaker.New("b", breaker.Config{Cooldown: 2 * time.Second})
		open(t, b)
		b.Force(breaker.ForcedOpen, "")
		time.Sleep(3 * time.Second)
		require.Equal(t, breaker.ForcedOpen, b.State())
		b.Release()
		require.Equal(t, breaker.HalfOpen, b.State(), "the cooldown went on underneath")
	})
}

// Scenario B58.
func TestASecondCallWaitsForTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHalfOpen(t, breaker.Config{Probes: 1, ProbeTimeout: 3 * time.Second})
		holdPermits(t, b, 1)
		var e *breaker.OpenError
		require.ErrorAs(t, b.Run(bg(), succeed), &e)
		require.Equal(t, time.Now().Add(3*time.Second), e.Until, "at the latest")
		require.Less(t, e.RetryAfter(), time.Second)
	})
}

// Scenario B70.
func TestOneProbePerWindow(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, MinCalls: 5, Probes: 1, Cooldown: 5 * time.Second, Window: 10 * time.Second}
	runScript(t, c, "0 EEEE .... closed")
	s := runScript(t, c, "0 EEEEE ..... open", "5 AS .r half_open", "5 b . open", "10 AS .r half_open", "10 b . open",
		"15 A . half_open") // this probe never has a result
	s.do("115 S . closed -1 0 0 0 0", "115 E . closed -1 0 1 1 0")
}

// Scenarios B83 to B85.
func TestProbesThatEndOddly(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, MinCalls: 5, Probes: 1, Cooldown: 5 * time.Second, ProbeTimeout: 2 * time.Second}
	// the caller gave up
	s := runScript(t, c, "0 EEEEE ..... open", "5 A . half_open", "5 i . half_open -1 0 0 0 0")
	// never reported in time
	s.do("5 A . half_open", "6.9 S r half_open", "7 S . closed", "7 b ! closed -1 0 0 0 0")
	s.do("7 A . closed")
	s.b.ResetAt(s.now)
	s.do("7 b ! closed -1 0 0 0 0") // reported after a reset
}

// Scenario B90.
func TestFewerCallsNeededThanProbes(t *testing.T) {
	c := breaker.Config{Recovery: breaker.Off, MinCalls: 2, Probes: 4, Cooldown: 5 * time.Second}
	runScript(t, c, "0 EE .. open", "5 AAAAS ....r half_open", "5 b . half_open", "5 b . open")
	runScript(t, c, "0 EE .. open", "5 SS .. closed")
}

// Scenario B68.
func TestACancelledProbeDoesNotClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHalfOpen(t, breaker.Config{Probes: 1})
		ctx, cancel := context.WithCancel(bg())
		require.ErrorIs(t, b.Run(ctx, func(ctx context.Context) error { cancel(); return ctx.Err() }), context.Canceled)
		require.Equal(t, breaker.HalfOpen, b.State(), "a cancelled probe does not close it")
	})
}

// Scenario B87.
func TestExactlyProbesOfAHundredPass(t *testing.T) {
	b := breaker.New("b", breaker.Config{MinCalls: 1, Cooldown: breaker.Off, Probes: 7})
	run(t, b, 1, fail)
	var allowed atomic.Int64
	var ready, wg sync.WaitGroup
	ready.Add(100)
	for range 100 {
		wg.Go(func() {
			ready.Done()
			ready.Wait()
			if _, err := b.Allow(); err == nil {
				allowed.Add(1)
			}
		})
	}
	wg.Wait()
	require.Equal(t, int64(7), allowed.Load())
	require.Equal(t, int64(93), b.Totals().Refused)
}

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

// Scenario A29. Another breaker stays half-open forever if a probe has no result.
func TestProbesWithoutAResultBlockNothing(t *testing.T) {
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
				p.Record(bg(), nil, breaker.Ignored)
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
		require.True(t, held[0].Record(bg(), nil, breaker.Ignored))
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
		require.True(t, last[0].Record(bg(), nil, breaker.Ignored), "no verdict: the place is free again")
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

// A probe that its caller cancels decides nothing and releases its slot.
func TestACancelledProbeDecidesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newHalfOpen(t, breaker.Config{Recovery: breaker.Off, Probes: 1})
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
