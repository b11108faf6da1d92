package breaker_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/sentinel"
	"github.com/weir-go/weir/window"
)

// modelCrowd is many goroutines that call through one breaker while other goroutines change the breaker.
// It counts the result of every call itself.
type modelCrowd struct {
	breaker *breaker.Breaker
	calls   int           // of each goroutine
	fails   atomic.Int64  // how many of a hundred calls fail
	done    chan struct{} // closed when the last call has ended

	made, refused, uncounted atomic.Int64
	counted                  [3]atomic.Int64 // by outcome
	ran                      [3]atomic.Int64 // by outcome, through Run, which does not say whether it counted
}

// outcome draws what a call comes to.
func (c *modelCrowd) outcome(rnd *rand.Rand) breaker.Outcome {
	switch n := rnd.Int64N(100); {
	case n < 3:
		return breaker.Ignored
	case n < 3+c.fails.Load():
		return breaker.Failure
	}
	return breaker.Success
}

// ask makes a call through a permit, and now and then reports it twice.
func (c *modelCrowd) ask(rnd *rand.Rand) {
	c.made.Add(1)
	p, err := c.breaker.Allow()
	if err != nil {
		c.refused.Add(1)
		return
	}
	o := c.outcome(rnd)
	modelLinger(rnd)
	if p.Record(o) {
		c.counted[o].Add(1)
	} else {
		c.uncounted.Add(1)
	}
	if rnd.IntN(20) == 0 && p.Record(breaker.Failure) {
		panic("a permit counted twice")
	}
}

// run makes a call through Run; some of them panic.
func (c *modelCrowd) run(rnd *rand.Rand) {
	c.made.Add(1)
	o, called := c.outcome(rnd), false
	defer func() {
		_ = recover()
		if called {
			c.ran[o].Add(1)
		} else {
			c.refused.Add(1)
		}
	}()
	_ = c.breaker.Run(bg(), func(context.Context) error {
		called = true
		modelLinger(rnd)
		switch {
		case o == breaker.Success:
			return nil
		case o == breaker.Ignored:
			return sentinel.ErrRefused
		case rnd.IntN(4) == 0:
			panic(errDown)
		}
		return errDown
	})
}

// modelLinger makes calls overlap in many ways.
func modelLinger(rnd *rand.Rand) {
	switch rnd.IntN(8) {
	case 0, 1:
		runtime.Gosched()
	case 2:
		modelYield(rnd.IntN(100))
	}
}

// modelYield lets other goroutines run the given number of times.
func modelYield(times int) {
	for range times {
		runtime.Gosched()
	}
}

// play makes all calls on eight goroutines, and repeats each of others until the calls have ended.
func (c *modelCrowd) play(seed uint64, call func(*rand.Rand), others ...func(*rand.Rand)) {
	c.done = make(chan struct{})
	var callers, rest sync.WaitGroup
	for i := range uint64(8) {
		callers.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, i))
			for range c.calls {
				call(rnd)
			}
		})
	}
	for i, other := range others {
		rest.Go(func() {
			for rnd := rand.New(rand.NewPCG(seed, 100+uint64(i))); ; other(rnd) {
				select {
				case <-c.done:
					return
				default:
					modelLinger(rnd)
				}
			}
		})
	}
	callers.Wait()
	close(c.done)
	rest.Wait()
}

// modelWatch collects changes, and checks that they come one at a time.
type modelWatch struct {
	busy  atomic.Bool
	twice atomic.Bool
	told  []breaker.Change // not guarded, so that the race detector finds concurrent deliveries

	halfOpenTimeout bool // a Config of the breaker has one
}

func (w *modelWatch) tell(c breaker.Change) {
	if !w.busy.CompareAndSwap(false, true) {
		w.twice.Store(true)
	}
	w.told = append(w.told, c)
	runtime.Gosched()
	if len(w.told) == 20 { // while more changes wait than may
		modelYield(20_000)
	}
	w.busy.Store(false)
}

// check requires that the changes form a legal sequence, except for dropped changes.
func (w *modelWatch) check(t *testing.T, b *breaker.Breaker) {
	t.Helper()
	require.False(t, w.twice.Load(), "two changes were delivered at once")
	require.NotEmpty(t, w.told)
	last, missing := breaker.Change{To: breaker.Closed}, int64(0)
	for _, c := range w.told {
		require.Greater(t, c.Seq(), last.Seq(), "out of order: %v after %v", c, last)
		missing += int64(c.Seq() - last.Seq() - 1)
		if c.Seq() == last.Seq()+1 {
			require.Equal(t, last.To, c.From, "%v after %v", c, last)
		}
		says := c.From == c.To || last.From == last.To // in shadow mode: that is no new state, and bears the call's own time
		require.True(t, says || !c.At.Before(last.At), "%d, %v, was due %v before %d, %v", c.Seq(), c, last.At.Sub(c.At), last.Seq(), last)
		require.True(t, modelLegal(c, w.halfOpenTimeout), "%v, by %v", c, c.Origin())
		require.True(t, modelSound(c.Counts), "%v: %+v", c, c.Counts)
		last = c
	}
	missing += int64(b.LastSeq() - last.Seq())
	require.Equal(t, b.StatsNow().Dropped, missing, "what was not delivered was counted")
}

var (
	overrides = []breaker.State{breaker.ForcedOpen, breaker.ForcedClosed, breaker.Disabled, breaker.Shadow}
	states    = append([]breaker.State{breaker.Closed, breaker.Open, breaker.HalfOpen}, overrides...)
)

// modelLegal reports whether a breaker with or without a HalfOpenTimeout may make the transition.
func modelLegal(c breaker.Change, halfOpenTimeout bool) bool {
	forced := func(s breaker.State) bool { return slices.Contains(overrides, s) }
	switch {
	case c.From == c.To:
		return c.From == breaker.Shadow && (c.Origin() == "calls" || c.Origin() == "clock" && halfOpenTimeout)
	case forced(c.From) || forced(c.To):
		return c.Origin() == "hand"
	case c.From == breaker.Open && c.To == breaker.HalfOpen:
		return c.Origin() == "clock"
	case c.To == breaker.Open:
		return c.Origin() == "calls" || c.Origin() == "hand" ||
			c.Origin() == "clock" && c.From == breaker.HalfOpen && halfOpenTimeout
	case c.From == breaker.HalfOpen && c.To == breaker.Closed:
		return c.Origin() == "calls" || c.Origin() == "hand"
	}
	return c.From == breaker.Open && c.To == breaker.Closed && c.Origin() == "hand"
}

func TestModelLegalAllowsTheClockToReopenOnlyWithAHalfOpenTimeout(t *testing.T) {
	for _, c := range []breaker.Change{
		{From: breaker.HalfOpen, To: breaker.Open}, {From: breaker.Shadow, To: breaker.Shadow},
	} {
		require.True(t, modelLegal(c.WithOrigin("clock"), true), "%v", c)
		require.False(t, modelLegal(c.WithOrigin("clock"), false), "%v", c)
		require.True(t, modelLegal(c.WithOrigin("calls"), false), "%v", c)
	}
}

// modelLook checks that what a breaker shows is sound at any moment.
func modelLook(t *testing.T, b *breaker.Breaker) func(*rand.Rand) {
	var last window.Totals
	return func(*rand.Rand) {
		s, now := b.StatsNow(), b.Totals()
		for _, c := range []window.Counts{s.Counts, window.Counts(s.Totals), window.Counts(now)} {
			if !modelSound(c) {
				t.Errorf("unsound counts: %+v", c)
			}
		}
		if now.Successes < last.Successes || now.Failures < last.Failures || now.Ignored < last.Ignored ||
			now.Refused < last.Refused || now.Slow < last.Slow {
			t.Errorf("totals went down from %+v to %+v", last, now)
		}
		if !slices.Contains(states, s.State) {
			t.Errorf("in no state: %v", s.State)
		}
		last = now
	}
}

// modelSound reports whether counts can be those of any calls.
func modelSound(c window.Counts) bool {
	return min(c.Successes, c.Failures, c.Ignored, c.Refused, c.SlowFailures) >= 0 &&
		c.Slow <= c.Calls() && c.SlowFailures <= min(c.Slow, c.Failures)
}

// modelConfigs are rules under which a breaker opens and closes often.
func modelConfigs(tell func(breaker.Change)) []breaker.Config {
	c := breaker.Config{MinCalls: 5, Cooldown: 200 * time.Microsecond, Probes: 3, OnChange: tell}
	slow, last, quick := c, c, c
	slow.SlowCall, slow.HungCalls, slow.Window = 40*time.Microsecond, true, 20*time.Millisecond
	slow.Trip = func(c window.Counts) (string, bool) { // lets others run between the reading and the opening
		modelYield(20)
		return "a handful", c.Calls() >= 4
	}
	last.LastCalls, last.Probes, last.ConsecutiveFailures = 20, 1, 4
	quick.Cooldown, quick.ProbeTimeout, quick.HalfOpenTimeout = breaker.Off, 100*time.Microsecond, time.Millisecond
	return []breaker.Config{c, slow, last, quick}
}

// modelHand changes a breaker by hand, in every way except by forcing the state never.
func modelHand(b *breaker.Breaker, configs []breaker.Config, never breaker.State) func(*rand.Rand) {
	return func(rnd *rand.Rand) {
		modelYield(rnd.IntN(300))
		switch rnd.IntN(10) {
		case 0, 1:
			if s := overrides[rnd.IntN(4)]; s != never {
				b.Force(s)
			}
		case 2:
			b.OpenFor(time.Duration(rnd.IntN(300)) * time.Microsecond)
		case 3:
			b.Reset()
		case 4, 5:
			if err := b.Reconfigure(configs[rnd.IntN(len(configs))]); err != nil {
				panic(err)
			}
		default:
			b.Release()
		}
	}
}

// TestEveryCallHasOneOutcomeHoweverTheyInterleave makes calls from eight goroutines while two goroutines
// force, release, open, reset and reconfigure the breaker. No call is lost or counted twice, and every
// change is delivered in order.
func TestEveryCallHasOneOutcomeHoweverTheyInterleave(t *testing.T) {
	lateInAll := int64(0)
	for seed := range uint64(12) {
		watch := &modelWatch{}
		configs := modelConfigs(watch.tell)
		if watch.halfOpenTimeout = seed%2 > 0; !watch.halfOpenTimeout {
			configs = configs[:3] // the last one has a HalfOpenTimeout
		}
		b := breaker.New("crowd", configs[int(seed)%len(configs)])
		c := &modelCrowd{breaker: b, calls: 4000}
		const never = breaker.Disabled // under which calls are not counted
		left, right := modelHand(b, configs, never), modelHand(b, configs, never)
		weather := func(rnd *rand.Rand) {
			c.fails.Store([]int64{0, 5, 30, 90}[rnd.IntN(4)])
			modelYield(2000)
		}
		c.play(seed, func(rnd *rand.Rand) {
			if rnd.IntN(2) == 0 {
				c.ask(rnd)
			} else {
				c.run(rnd)
			}
		}, left, right, weather, modelLook(t, b))

		total, late := b.Totals(), b.StatsNow().Late
		require.Equal(t, int64(8*c.calls), c.made.Load())
		require.Equal(t, c.refused.Load(), total.Refused, "each refusal is counted once")
		require.Equal(t, c.made.Load(), total.Calls()+total.Ignored+total.Refused+late, "one outcome per call")
		missed := late - c.uncounted.Load() // calls of Run that were late
		for o, of := range map[breaker.Outcome]int64{
			breaker.Success: total.Successes, breaker.Failure: total.Failures, breaker.Ignored: total.Ignored,
		} {
			most := c.counted[o].Load() + c.ran[o].Load()
			require.LessOrEqual(t, c.counted[o].Load(), of, "%v: what Record said counted has counted", o)
			require.LessOrEqual(t, of, most, "%v", o)
			missed -= most - of
		}
		require.Zero(t, missed, "what is not among the totals was late")
		lateInAll += late
		watch.check(t, b)
	}
	require.Positive(t, lateInAll)
}

// TestDisabledCountsNothingHoweverCallsInterleave is the same test with an override under which results
// are neither counted nor late.
func TestDisabledCountsNothingHoweverCallsInterleave(t *testing.T) {
	watch := &modelWatch{halfOpenTimeout: true}
	configs := modelConfigs(watch.tell)
	b := breaker.New("crowd", configs[0])
	c := &modelCrowd{breaker: b, calls: 5000}
	c.fails.Store(40)
	left, right := modelHand(b, configs, breaker.Closed), modelHand(b, configs, breaker.Closed)
	c.play(7, c.ask, left, right, modelLook(t, b))

	total := b.Totals()
	require.Equal(t, c.counted[breaker.Success].Load(), total.Successes)
	require.Equal(t, c.counted[breaker.Failure].Load(), total.Failures)
	require.Equal(t, c.counted[breaker.Ignored].Load(), total.Ignored)
	require.Equal(t, c.refused.Load(), total.Refused)
	require.GreaterOrEqual(t, c.uncounted.Load(), b.StatsNow().Late)
	watch.check(t, b)
}

// TestNeverMoreProbesThanSlotsHoweverCallsInterleave uses a breaker that is never closed, so that every call
// that passes is a probe, and counts the probes in flight for each half-open stay.
//
// A call belongs to a stay if the change to that stay was the last one both before and after Allow. Every
// stay begins with a change, and only HalfOpen lets calls pass here.
func TestNeverMoreProbesThanSlotsHoweverCallsInterleave(t *testing.T) {
	const most = 4
	configs := []breaker.Config{}
	for probes := 1; probes <= most; probes++ {
		configs = append(configs, breaker.Config{
			Initial: breaker.Open, Cooldown: breaker.Off, Probes: probes, ProbeTimeout: time.Hour,
			HalfOpenTimeout: 2 * time.Millisecond, MinCalls: 1 + probes%3,
		})
	}
	for seed := range uint64(3) {
		b := breaker.New("probes", configs[most-1])
		c := &modelCrowd{breaker: b, calls: 3000}
		var inFlight sync.Map // by the number of the stay: *atomic.Int64
		var seen, atOnce atomic.Int64
		c.play(seed, func(rnd *rand.Rand) {
			before, half := b.Stay()
			p, err := b.Allow()
			if err != nil {
				runtime.Gosched()
				return
			}
			if after, _ := b.Stay(); after == before && half {
				n, _ := inFlight.LoadOrStore(before, new(atomic.Int64))
				if now := n.(*atomic.Int64).Add(1); now > most {
					t.Errorf("%d probes in flight at once", now)
				} else if now > atOnce.Load() {
					atOnce.Store(now)
				}
				seen.Add(1)
				modelLinger(rnd)
				n.(*atomic.Int64).Add(-1)
			}
			o := breaker.Failure
			if rnd.IntN(4) == 0 {
				o = breaker.Ignored
			}
			p.Record(o)
		}, func(rnd *rand.Rand) {
			modelYield(rnd.IntN(300))
			switch rnd.IntN(6) {
			case 0:
				b.Force(breaker.ForcedOpen)
			case 1:
				b.OpenFor(time.Duration(rnd.IntN(50)) * time.Microsecond)
			case 2:
				if err := b.Reconfigure(configs[rnd.IntN(most)]); err != nil {
					panic(err)
				}
			default:
				b.Release()
			}
		})
		require.Positive(t, seen.Load())
		require.Greater(t, atOnce.Load(), int64(1), "no two were ever in flight at once: the test shows nothing")
		require.Zero(t, b.Totals().Successes)
	}
}
