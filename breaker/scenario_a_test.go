package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/window"
)

// The tests of this file are the breaker scenarios of part A of the project's list, with their numbers.

func TestScenarioA01A02_FreshAndSixInARow(t *testing.T) {
	c := breaker.Config{FailureRate: breaker.Off, ConsecutiveFailures: 6}
	play(t, c, "0 - - closed -1 0 0 0 0", "0 EEEEE ..... closed", "0 S . closed", "0 EEEEE ..... closed", "0 E . open")
}

func TestScenarioA03_AtTheThresholdAndOneBelow(t *testing.T) {
	c := breaker.Config{FailureRate: 0.57, LastCalls: 100, MinCalls: 100}
	for failures, want := range map[int]breaker.State{56: breaker.Closed, 57: breaker.Open} {
		s := play(t, c)
		for i := range 100 {
			s.do(fmt.Sprintf("0 %c . %s", "ES"[min(max(i-failures+1, 0), 1)], map[bool]string{true: "open", false: "closed"}[i == 99 && want == breaker.Open]))
		}
		require.Equal(t, want, s.b.StateAt(s.now))
	}
}

func TestScenarioA04A05_MinCallsAndTheFullRate(t *testing.T) {
	play(t, breaker.Config{MinCalls: 4, FailureRate: 0.01}, "0 EEE ... closed", "20 EEE ... closed")
	play(t, breaker.Config{MinCalls: 3, FailureRate: 1}, "0 EE .. closed", "0 E . open")
}

func TestScenarioA06_AnOldBucketLeavesWithItsContent(t *testing.T) {
	c := breaker.Config{Window: 3 * time.Second, Buckets: 3, FailureRate: 1, MinCalls: 100}
	play(t, c, "0 EE .. closed", "1 SSS ... closed", "2 E . closed -1 3 6 3 0", "3 - - closed -1 3 4 1 0", "4 - - closed -1 0 1 1 0", "5 - - closed -1 0 0 0 0")
}

func TestScenarioA07_ABurstAcrossTheWindowsEdge(t *testing.T) {
	b := breaker.NewAt("b", breaker.Config{}, t0)
	at := func(ms int) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }
	for i := range 10_900 {
		p, err := b.AllowAt(at(9999))
		require.NoError(t, err)
		o, end := breaker.Success, at(9999)
		if i >= 10_000 {
			o, end = breaker.Failure, at(10_000)
		}
		p.RecordAt(end, o)
	}
	require.Equal(t, breaker.Closed, b.StateAt(at(10_000)))
	require.InDelta(t, 0.0826, b.CountsAt(at(10_000)).FailureRate(), 1e-4)
}

func TestScenarioA08_IdleForLongSeesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{})
		run(t, b, 19, fail)
		time.Sleep(time.Hour)
		require.Zero(t, withoutStreak(b.StatsNow().Counts))
		require.Zero(t, withoutStreak(b.Counts()))
		run(t, b, 1, fail)
		require.Equal(t, breaker.Closed, b.State())
	})
}

func TestScenarioA09_ManyFirstWritersAfterAnIdleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{FailureRate: breaker.Off})
		for round := range 50 {
			time.Sleep(time.Minute)
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() { _ = b.Run(bg(), fail) })
			}
			wg.Wait()
			require.Equal(t, int64(20), b.Counts().Failures)
			require.Equal(t, int64(20*(round+1)), b.Totals().Failures)
		}
	})
}

func TestScenarioA11_TimesBeforeTheStart(t *testing.T) {
	s := play(t, breaker.Config{MinCalls: 5}, "0 S . closed -1 1 1 0 0")
	s.now = t0.Add(-time.Hour)
	s.do("-3600 SE .. closed -1 2 3 1 0")
	s.now = t0.Add(-100 * 365 * 24 * time.Hour)
	require.Equal(t, "..", s.call('S')+s.call('E'))
	s.do("0 E . open 50 3 6 3 0")
}

func TestScenarioA13A14A15_RowsAndMasks(t *testing.T) {
	c := breaker.Config{ConsecutiveFailures: 3, Cooldown: time.Minute}
	play(t, c, "0 E . closed", "60 E . closed", "120 E . open") // wider apart than the window
	play(t, breaker.Config{MinCalls: 2}, "0 SSSSS ..... closed", "10.5 E . closed")
	s := play(t, breaker.Config{})
	for range 1000 {
		s.call('S')
	}
	s.now = s.now.Add(24 * time.Hour)
	s.do("0 EEEEEEEEEEEEEEEEEEEE .................... open")
}

func TestScenarioA16A17A18_Open(t *testing.T) {
	c := breaker.Config{MinCalls: 5, Cooldown: 5 * time.Second}
	s := play(t, c, "0 AAA ... closed", "0 EEEEE ..... open 100 0 5 5 0", "4.999999999 S r open", "4.999999999 gb !! open")
	require.Len(t, s.changes(), 1, "a late failure is no news")
	s.do("5 - - half_open -1 0 0 0 0", "5 g ! half_open")
}

func TestScenarioA23_CooldownsGrowAndJitter(t *testing.T) {
	c := breaker.Config{MinCalls: 1, Probes: 1, Cooldown: time.Second, CooldownFactor: 2, MaxCooldown: 5 * time.Second, CooldownJitter: 0.5}
	shorter := 0
	for range 50 {
		s := play(t, c, "0 E . open")
		for _, longest := range []float64{1, 2, 4, 5, 5} {
			wait := s.b.StatsAt(s.now).Since
			_, err := s.b.AllowAt(s.now)
			var e *breaker.OpenError
			require.ErrorAs(t, err, &e)
			cooldown := e.Until.Sub(wait).Seconds()
			require.LessOrEqual(t, cooldown, longest)
			require.GreaterOrEqual(t, cooldown, longest/2)
			if cooldown < longest*0.9 {
				shorter++
			}
			s.now = e.Until
			s.call('E')
		}
	}
	require.Greater(t, shorter, 50, "jitter spreads the cooldowns: of 250")
}

func TestScenarioA24_TheServicesOwnRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{MinCalls: 3, Cooldown: 5 * time.Second})
		run(t, b, 1, failWith(fmt.Errorf("503: %w", waitError{30 * time.Second})))
		run(t, b, 2, fail)
		require.Equal(t, breaker.Open, b.State())
		time.Sleep(29 * time.Second)
		refused(t, b)
		time.Sleep(time.Second)
		require.Equal(t, breaker.HalfOpen, b.State(), "asked for before it opened")

		for range 3 { // by hand, and bounded
			p, err := b.Allow()
			require.NoError(t, err)
			p.SetRetryAfter(time.Hour)
			require.True(t, p.Record(breaker.Failure))
		}
		time.Sleep(time.Minute - 1)
		refused(t, b)
		time.Sleep(time.Nanosecond)
		require.Equal(t, breaker.HalfOpen, b.State())

		run(t, b, 3, failWith(waitError{-time.Hour})) // shorter than the cooldown, or nonsense
		time.Sleep(5 * time.Second)
		require.Equal(t, breaker.HalfOpen, b.State())
	})
	b := breaker.New("b", breaker.Config{MinCalls: 1, Cooldown: breaker.Off, MaxRetryAfter: breaker.Off})
	run(t, b, 1, failWith(waitError{time.Hour}))
	require.Equal(t, breaker.HalfOpen, b.State(), "not listened to")
}

func TestScenarioA25A26A27_ProbesAndTheirVerdict(t *testing.T) {
	c := breaker.Config{MinCalls: 5, Probes: 3, Cooldown: 5 * time.Second}
	play(t, c, "0 EEEEE ..... open", "5 AAAS ...r half_open", "5 ggg ... closed")
	play(t, c, "0 EEEEE ..... open", "5 AAAS ...r half_open", "5 gbb ... open")
	c.FailureRate, c.ConsecutiveFailures = breaker.Off, 5
	play(t, c, "0 EEEEE ..... open", "5 SSE ... open") // the first failure
}

func TestScenarioA28_IgnoredProbesWithoutEnd(t *testing.T) {
	s := play(t, breaker.Config{MinCalls: 5, Probes: 2}, "0 EEEEE ..... open")
	for range 100 {
		s.do("5 I . half_open -1 0 0 0 0")
	}
	s.do("5 SS .. closed")
}

func TestScenarioA31_ARefusedCallHoldsNothing(t *testing.T) {
	b := breaker.New("b", breaker.Config{MinCalls: 1, Probes: 1, Cooldown: breaker.Off})
	run(t, b, 1, fail)
	for range 10 {
		require.NoError(t, b.Check(), "looking takes nothing")
	}
	run(t, b, 1, succeed)
	require.Equal(t, breaker.Closed, b.State())
}

// A service that answers "bad request" works. Classify decides whether such an answer closes a half-open
// breaker, and Accept makes it a success.
func TestScenarioA32_AProbeWithABadRequest(t *testing.T) {
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
			b := halfOpen(t, breaker.Config{Probes: 1, Classify: c.classify})
			run(t, b, 1, failWith(errBadRequest))
			require.Equal(t, c.want, b.State())
		})
	}
}

func TestFlawQ_ScenarioA33A34_BadResultsAndWrappedErrors(t *testing.T) {
	type response struct{ status int }
	byStatus := func(r response, err error) breaker.Outcome {
		if r.status >= 500 {
			return breaker.Failure
		}
		return breaker.DefaultClassify(err)
	}
	b := breaker.New("b", breaker.Config{Classify: breaker.Accept(io.EOF)})
	for _, status := range []int{200, 404, 503} {
		r, err := breaker.DoResult(bg(), b, func(context.Context) (response, error) { return response{status}, nil }, byStatus)
		require.NoError(t, err)
		require.Equal(t, status, r.status)
	}
	run(t, b, 1, func(context.Context) error { return fmt.Errorf("read: %w", errors.Join(errDown, io.EOF)) })
	require.Equal(t, window.Counts{Successes: 3, Failures: 1}, withoutStreak(b.Counts()))
	require.Panics(t, func() { _, _ = breaker.DoResult(bg(), b, func(context.Context) (int, error) { return 0, nil }, nil) })
}

func TestScenarioA37_SlowSuccesses(t *testing.T) {
	c := breaker.Config{SlowCall: time.Second, SlowRate: 0.4, MinCalls: 5, FailureRate: breaker.Off, Window: time.Minute}
	play(t, c, "0 ssSS .... closed", "4 S . open")
	c.SlowRate = 0.41
	play(t, c, "0 ssSS .... closed", "4 S . closed")
	c.SlowRate = breaker.Off
	play(t, c, "0 ssssss ...... closed")
}

func TestScenarioA38_OneOutcomeACall(t *testing.T) {
	const callers, calls = 8, 12_500
	b := breaker.New("b", breaker.Config{MinCalls: 5, Window: time.Millisecond, Cooldown: 50 * time.Microsecond})
	var succeeded, failed, ignored, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(i)))
			for range calls {
				p, err := b.Allow()
				if err != nil {
					refused.Add(1)
					continue
				}
				o := breaker.Outcome(rnd.IntN(3))
				if p.Record(o) {
					[]*atomic.Int64{&succeeded, &failed, &ignored}[o].Add(1)
				}
			}
		})
	}
	wg.Wait()
	total := b.Totals()
	require.Equal(t, window.Totals{
		Successes: succeeded.Load(), Failures: failed.Load(), Ignored: ignored.Load(), Refused: refused.Load(),
		ConsecutiveFailures: total.ConsecutiveFailures,
	}, total)
	require.Equal(t, int64(callers*calls), succeeded.Load()+failed.Load()+ignored.Load()+refused.Load()+b.StatsNow().Late)
}

func TestScenarioA39A41_ChangesAlternateWithTheirCounts(t *testing.T) {
	var mu sync.Mutex
	var told []breaker.Change
	b := breaker.New("b", breaker.Config{MinCalls: 3, Probes: 2, Cooldown: breaker.Off, OnChange: func(c breaker.Change) {
		mu.Lock()
		told = append(told, c)
		mu.Unlock()
	}})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 500 {
				_ = b.Run(bg(), map[bool]func(context.Context) error{true: fail, false: succeed}[i%3 > 0])
			}
		})
	}
	wg.Wait()
	require.NotEmpty(t, told)
	legal := map[breaker.State][]breaker.State{
		breaker.Closed: {breaker.Open}, breaker.Open: {breaker.HalfOpen}, breaker.HalfOpen: {breaker.Open, breaker.Closed},
	}
	from := breaker.Closed
	for i, c := range told {
		if i > 0 && c.Seq() != told[i-1].Seq()+1 { // some were dropped
			from = c.From
		}
		require.Equal(t, from, c.From)
		require.Contains(t, legal[c.From], c.To)
		if c.From == breaker.Closed {
			require.GreaterOrEqual(t, c.Counts.FailureRate(), 0.5)
			require.GreaterOrEqual(t, c.Counts.Calls(), int64(3))
		}
		from = c.To
	}
	require.Equal(t, b.LastSeq(), told[len(told)-1].Seq())
}

func TestScenarioA42_OverridesAndWhatLiesUnderneath(t *testing.T) {
	s := play(t, breaker.Config{MinCalls: 5, Cooldown: 5 * time.Second, Probes: 1}, "0 SS .. closed")
	force := func(state breaker.State) { s.b.ForceAt(s.now, state) }

	force(breaker.ForcedClosed)
	s.do("0 EEEEEEEE ........ forced_closed 100 0 8 8 0")
	s.b.ReleaseAt(s.now)
	s.do("0 - - closed -1 0 0 0 0", "0 EEEE .... closed", "0 E . open") // judged from here on

	force(breaker.ForcedOpen) // over an open breaker, whose time goes on
	s.do("1 S r forced_open")
	force(breaker.Shadow)
	s.do("2 S . shadow")
	s.b.ReleaseAt(s.now)
	s.do("2 S r open 100 0 5 5 1", "5 A . half_open")

	force(breaker.ForcedOpen) // over a half-open one: its probe is late
	s.do("6 g ! forced_open")
	s.b.ReleaseAt(s.now)
	s.do("6 - - half_open", "6 S . closed")

	force(breaker.ForcedOpen) // what is done by hand meanwhile holds underneath
	s.b.OpenForAt(s.now, time.Hour)
	s.do("7 S r forced_open")
	s.b.ReleaseAt(s.now)
	s.do("7 S r open")
	force(breaker.ForcedOpen)
	s.b.ResetAt(s.now)
	s.do("8 S r forced_open")
	s.b.ReleaseAt(s.now)
	s.do("8 S . closed")
	s.b.ReleaseAt(s.now)
	s.do("8 S . closed")
}

func TestScenarioA43_Reconfigure(t *testing.T) {
	c := breaker.Config{MinCalls: 5, Cooldown: 5 * time.Second, Probes: 2, Window: 20 * time.Second}
	s := play(t, c, "0 AA .. closed", "0 EEEE .... closed")

	c.MinCalls, c.FailureRate = 6, 0.9 // the same window keeps its calls, and what is in flight counts
	require.NoError(t, s.b.ReconfigureAt(s.now, c))
	s.do("0 - - closed -1 0 4 4 0", "1 b . closed", "1 b . open")

	c.Cooldown, c.Probes = time.Hour, 1 // an open breaker keeps recovering
	require.NoError(t, s.b.ReconfigureAt(s.now, c))
	s.do("5.9 S r open", "6 AS .r half_open")

	c.Probes = 3 // the probe that is out has its place
	require.NoError(t, s.b.ReconfigureAt(s.now, c))
	s.do("6 AAS ..r half_open", "6 ggg ... closed")

	c.LastCalls, c.Window, c.MinCalls = 3, 0, 3 // another window begins empty, and totals go on
	before := s.b.Totals()
	s.do("6 AE .. closed")
	require.NoError(t, s.b.ReconfigureAt(s.now, c))
	s.do("7 - - closed -1 0 0 0 0", "7 b . closed -1 0 1 1 0")
	require.Equal(t, before.Failures+2, s.b.Totals().Failures)
	s.do("7 EE .. open")

	bad := s.b.ReconfigureAt(s.now, breaker.Config{Probes: -1})
	require.EqualError(t, bad, "breaker: Probes is -1, must lie between 1 and 10000")
	s.do("7 - - open")
}

func TestReconfigureChangesSlowCallAndOnChange(t *testing.T) {
	var told []string
	c := breaker.Config{MinCalls: 2, SlowCall: time.Second, HungCalls: true, OnChange: func(breaker.Change) { told = append(told, "old") }}
	s := play(t, c, "0 ss .. open")
	s.b.ResetAt(s.now)
	c.SlowCall = 10 * time.Second
	c.OnChange = func(breaker.Change) { told = append(told, "new") }
	require.NoError(t, s.b.ReconfigureAt(s.now, c))
	s.do("4 ss .. closed") // two seconds each
	s.slow(0)
	s.do("10 EE .. open")
	require.Equal(t, []string{"old", "old", "new"}, told)
	c.SlowCall, c.HungCalls = 0, false
	require.NoError(t, s.b.ReconfigureAt(s.now, c))
}

func TestTripAndSharedCountsAreAsked(t *testing.T) {
	var asked []window.Counts
	fleet := window.Counts{Successes: 100}
	var told recorder
	b := breaker.New("b", told.on(breaker.Config{
		FailureRate: 0.5, MinCalls: 50,
		Trip: func(c window.Counts) (string, bool) {
			asked = append(asked, c)
			return fmt.Sprintf("%d failures", c.Failures), c.Failures >= 3
		},
		SharedCounts: func() window.Counts { return fleet },
	}))
	run(t, b, 1, succeed)
	run(t, b, 2, fail)
	require.Equal(t, breaker.Closed, b.State())
	require.Equal(t, []int64{0, 1, 2}, []int64{asked[0].Failures, asked[1].Failures, asked[2].Failures})
	run(t, b, 1, fail)
	require.Equal(t, "3 failures", told.changes()[0].Reason)
	require.Equal(t, "calls", told.changes()[0].Origin())

	b.Reset()
	fleet.Failures = 200
	run(t, b, 1, succeed)
	last := told.changes()[2]
	require.Equal(t, "failure rate 66.7% of 300 calls, limit 50%, by shared counts", last.Reason)
	require.Equal(t, "shared_counts", last.Origin())
}

// T: Classify or Trip panics under a lock.
func TestFlawT_ARuleThatPanicsLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := true
		b := breaker.New("b", breaker.Config{Trip: func(window.Counts) (string, bool) {
			if panics {
				panic("trip")
			}
			return "", false
		}})
		require.PanicsWithValue(t, "trip", func() { _ = b.Run(bg(), fail) })
		require.PanicsWithValue(t, "trip", func() { _, _ = breaker.Do(bg(), b, func(context.Context) (int, error) { return 1, nil }) })
		p, err := b.Allow()
		require.NoError(t, err)
		require.PanicsWithValue(t, "trip", func() { p.Record(breaker.Failure) })
		require.False(t, p.Record(breaker.Failure))
		panics = false
		require.Equal(t, window.Counts{Successes: 1, Failures: 2, ConsecutiveFailures: 1}, b.Counts(), "the results stand")
		run(t, b, 17, fail)
		require.Equal(t, breaker.Open, b.State())
	})
}

// F: a state that is seen before its deadline. M: a threshold that is only met when equal.
func TestFlawF_AnOpenBreakerAlwaysHasItsDeadline(t *testing.T) {
	for range 200 {
		b := breaker.New("b", breaker.Config{MinCalls: 1, Cooldown: time.Hour})
		var wg sync.WaitGroup
		var through atomic.Int64
		for range 8 {
			wg.Go(func() {
				for b.State() == breaker.Closed {
					runtime.Gosched()
				}
				if _, err := b.Allow(); err == nil {
					through.Add(1)
				}
			})
		}
		_ = b.Run(bg(), fail)
		wg.Wait()
		require.Zero(t, through.Load())
	}
}

func TestFlawM_ThresholdsThatWereJumpedOver(t *testing.T) {
	c := breaker.Config{FailureRate: breaker.Off, ConsecutiveFailures: 10}
	s := play(t, c, "0 EEEEEEEE ........ closed")
	c.ConsecutiveFailures = 5 // passed already
	require.NoError(t, s.b.ReconfigureAt(s.now, c))
	s.do("0 E . open")
}

// H: readings that tear while the window moves on; N: rounding; Q: errors that are
// not unwrapped. They have their tests in internal/tally, TestFlawN and
// TestFlawQ; here the reading goes through the breaker.
func TestFlawH_NoTornReadingWhileTheWindowMoves(t *testing.T) {
	b := breaker.New("b", breaker.Config{FailureRate: breaker.Off, Window: time.Millisecond, Buckets: 10})
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for !done.Load() {
				if c := b.Counts(); c.Successes != 0 || c.Failures < 0 || c.Slow != 0 {
					t.Errorf("every call fails, and the counts are %+v", c)
					return
				}
			}
		})
	}
	for range 200_000 {
		_ = b.Run(bg(), fail)
	}
	done.Store(true)
	wg.Wait()
}

// I: a clock that steps. L: goroutines and timers that stay behind. P: timers of the past.
func TestFlawL_NoGoroutineOrTimerRemains(t *testing.T) {
	before := runtime.NumGoroutine()
	kept := make([]weak.Pointer[breaker.Breaker], testenv.Repeat(100_000, 20_000))
	for i := range kept {
		b := breaker.New("b", breaker.Config{MinCalls: 1})
		_ = b.Run(bg(), fail)
		kept[i] = weak.Make(b)
	}
	runtime.GC()
	for _, b := range kept {
		require.Nil(t, b.Value(), "a goroutine or a timer still has the breaker")
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before+1)
}

// R: zero cannot be configured. Here Off and thresholds of 1 can.
func TestFlawR_ZeroAndOffAreDifferent(t *testing.T) {
	play(t, breaker.Config{MinCalls: 1, FailureRate: 1, Cooldown: breaker.Off, Probes: 1}, "0 E . half_open", "0 E . half_open", "0 S . closed")
	play(t, breaker.Config{MinCalls: 1, FailureRate: breaker.Off, ConsecutiveFailures: 1}, "0 E . open")
}

// O: a shared breaker holds the lock of its store for a whole call. SharedCounts is called outside all locks:
// if it blocks, only its caller waits.
func TestFlawO_BlockedSharedCountsBlockNoOtherCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		store := make(chan struct{})
		b := breaker.New("b", breaker.Config{SharedCounts: func() window.Counts {
			if asked.Add(1) == 1 {
				<-store
			}
			return window.Counts{}
		}})
		go func() { _ = b.Run(bg(), succeed) }()
		synctest.Wait()
		run(t, b, 19, fail)
		require.Equal(t, breaker.Open, b.State(), "it even opens meanwhile, on its own evidence")
		require.Equal(t, int64(1), b.Totals().Successes, "the call's own result has been booked")
		close(store)
	})
}
