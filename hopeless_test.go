package weir_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
)

// answersAfter returns a function that answers after d, or when its context is done.
func answersAfter(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// callWithDeadline makes a call of the given duration, with a deadline.
func callWithDeadline(g *weir.Gate, deadline, takesFor time.Duration) error {
	ctx, cancel := context.WithTimeout(bg(), deadline)
	defer cancel()
	return g.Run(ctx, answersAfter(takesFor))
}

// learnLatency makes 100 calls that take 50 ms, from which the gate learns how long calls take.
func learnLatency(t *testing.T, g *weir.Gate) {
	t.Helper()
	for range 100 {
		require.NoError(t, g.Run(bg(), answersAfter(50*time.Millisecond)))
	}
	time.Sleep(100 * time.Millisecond)
}

// makeTestCall makes the hopeless call that is allowed once per second.
func makeTestCall(t *testing.T, g *weir.Gate) {
	t.Helper()
	require.ErrorIs(t, callWithDeadline(g, 10*time.Millisecond, 50*time.Millisecond), context.DeadlineExceeded)
}

func TestACallThatCannotSucceedInTimeIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("search", weir.Config{RefuseHopeless: true})
		learnLatency(t, g)
		makeTestCall(t, g)
		before := g.Totals()
		err := callWithDeadline(g, 12*time.Millisecond, 0)
		var hopeless *weir.HopelessError
		require.ErrorAs(t, err, &hopeless)
		require.Equal(t, &weir.HopelessError{Name: "search", Left: 12 * time.Millisecond}, hopeless)
		require.EqualError(t, err, `gate "search": the deadline is in 12ms, and only 0.0% of the calls succeed within that time`)
		require.ErrorIs(t, err, weir.ErrRefused)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, weir.RetryAfter(err))
		require.Equal(t, before, g.Totals(), "the breaker counts nothing")
		require.Zero(t, g.Stats())
		metrics, _ := readMetrics(g)
		require.Equal(t, 1.0, metrics["weir.gate.hopeless_calls"], "%v", metrics)

		require.NoError(t, callWithDeadline(g, 60*time.Millisecond, 50*time.Millisecond))
		require.NoError(t, g.Run(bg(), succeed), "without a deadline")
	})
}

func TestCallsWithASlotCanBeHopeless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("search", weir.Config{RefuseHopeless: true, MaxConcurrent: 10})
		learnLatency(t, g)
		makeTestCall(t, g)
		var hopeless *weir.HopelessError
		require.ErrorAs(t, callWithDeadline(g, 12*time.Millisecond, 0), &hopeless)
		require.Zero(t, callsInFlight(g))
	})
}

func TestWithoutTheSettingNoCallIsHopeless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{})
		learnLatency(t, g)
		for range 20 {
			require.NoError(t, callWithDeadline(g, time.Microsecond, 0))
		}
		for s := range g.Observe {
			require.NotEqual(t, "weir.gate.hopeless_calls", s.Instrument.Name)
		}
	})
}

func TestWithFewCallsNothingIsHopeless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{RefuseHopeless: true})
		for range 59 {
			require.NoError(t, g.Run(bg(), answersAfter(50*time.Millisecond)))
		}
		time.Sleep(time.Second)
		for range 20 {
			require.NoError(t, callWithDeadline(g, time.Millisecond, 0))
		}
	})
}

// Calls without a deadline are counted when they return, so the estimate stays known while calls
// with a deadline are hopeless.
func TestOneHopelessCallPerSecondIsAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{RefuseHopeless: true, Breaker: breaker.Config{FailureRate: breaker.Off}})
		allowed, refused := 0, 0
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			go func() { _ = g.Run(bg(), answersAfter(50*time.Millisecond)) }() // keeps the estimate
			if time.Since(end) < -25*time.Second {
				continue
			}
			ctx, cancel := context.WithTimeout(bg(), 10*time.Millisecond)
			permit, err := g.Allow(ctx)
			if err == nil {
				permit.Record(bg(), nil, breaker.Ignored)
				allowed++
			} else {
				require.ErrorIs(t, err, weir.ErrRefused)
				refused++
			}
			cancel()
		}
		synctest.Wait()
		time.Sleep(time.Second)
		require.InDelta(t, 25, allowed, 1)
		require.Equal(t, 25_000, allowed+refused)
	})
}

// TestAServiceThatIsFastAgainIsNoticed makes calls with the same time until their deadlines. These
// calls become hopeless, and later are not hopeless any more. The gate can notice that only by the
// rare calls that it allows as tests, and by the age of its estimate.
func TestAServiceThatIsFastAgainIsNoticed(t *testing.T) {
	for _, slowFor := range []time.Duration{3 * time.Second, 7 * time.Second, 33 * time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			g := weir.New("g", weir.Config{RefuseHopeless: true, Breaker: breaker.Config{FailureRate: breaker.Off}})
			slow, start := 300*time.Millisecond, time.Now()
			sent, wasted, back := 0, 0, time.Duration(0)
			var mu sync.Mutex
			for time.Since(start) < slowFor+30*time.Second {
				if time.Since(start) >= slowFor {
					slow = 20 * time.Millisecond
				}
				go func(takesFor time.Duration, began time.Duration) {
					err := callWithDeadline(g, 100*time.Millisecond, takesFor)
					mu.Lock()
					defer mu.Unlock()
					switch {
					case began < slowFor:
						sent++
						if err == context.DeadlineExceeded { //nolint:errorlint // that of the call itself
							wasted++
						}
					case err != nil:
						back = began - slowFor
					}
				}(slow, time.Since(start))
				time.Sleep(5 * time.Millisecond)
			}
			time.Sleep(time.Second)
			t.Logf("slow for %v: %d of %d calls wasted, all allowed again after %v", slowFor, wasted, sent, back)
			require.Less(t, back, 1200*time.Millisecond)
			// The gate learns from 60 calls. Then 20 are in flight, and 20 come until the next
			// estimate. This happens every 5 to 10 s.
			require.LessOrEqual(t, wasted, 110*(1+int(slowFor/(5*time.Second)))+int(slowFor/time.Second))
		})
	}
}

func TestAHopelessCallTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 200})
		slots := inflight.New(inflight.Config{Limit: 1})
		far := newRemote(1000)
		g := weir.Join("g", weir.Parts{
			Breaker: breaker.New("b", breaker.Config{}), Limiter: bucket, InFlight: slots, Remote: far, RefuseHopeless: true,
		})
		learnLatency(t, g)
		makeTestCall(t, g)
		tokens, asked := bucket.Take(0).Remaining, far.asked.Load()
		require.ErrorIs(t, callWithDeadline(g, time.Millisecond, 0), weir.ErrRefused)
		require.Equal(t, tokens, bucket.Take(0).Remaining)
		require.Equal(t, asked, far.asked.Load())
		require.Zero(t, slots.InFlight())
	})
}

// TestACallThatBecomesHopelessGivesEverythingBack makes calls whose deadline is used up by the
// remote and by a wait.
func TestACallThatBecomesHopelessGivesEverythingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 500})
		slots, far := inflight.New(inflight.Config{Limit: 1}), newRemote(10_000)
		b := breaker.New("b", breaker.Config{})
		g := weir.Join("g", weir.Parts{
			Breaker: b, Limiter: bucket, InFlight: slots, Remote: far, RefuseHopeless: true, MaxWait: time.Minute,
		})
		learnLatency(t, g)
		makeTestCall(t, g)
		tokens, remotes := bucket.Take(0).Remaining, far.bucket.Take(0).Remaining
		far.during = func() { time.Sleep(80 * time.Millisecond) }
		var hopeless *weir.HopelessError
		require.ErrorAs(t, callWithDeadline(g, 100*time.Millisecond, 0), &hopeless)
		require.Equal(t, 20*time.Millisecond, hopeless.Left)
		far.during = func() {}

		permit, err := g.Allow(bg())
		require.NoError(t, err)
		time.AfterFunc(80*time.Millisecond, func() { permit.Record(bg(), nil, breaker.Success) })
		require.ErrorAs(t, callWithDeadline(g, 100*time.Millisecond, 0), &hopeless, "after a wait for a slot")
		require.Equal(t, 20*time.Millisecond, hopeless.Left)
		synctest.Wait() // Record wakes the caller first, and counts then

		require.Equal(t, tokens-1, bucket.Take(0).Remaining)
		require.LessOrEqual(t, remotes-1, far.bucket.Take(0).Remaining)
		require.Zero(t, slots.InFlight())
		require.Equal(t, int64(101), b.Totals().Successes)
		require.NoError(t, callWithDeadline(g, 100*time.Millisecond, 50*time.Millisecond))
	})
}

// A test call waits like any other, and is not refused afterwards.
func TestATestCallMayWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{MaxConcurrent: 1, MaxWait: time.Second, RefuseHopeless: true})
		learnLatency(t, g)
		permit, err := g.Allow(bg())
		require.NoError(t, err)
		time.AfterFunc(5*time.Millisecond, func() { permit.Record(bg(), nil, breaker.Success) })
		makeTestCall(t, g)
		require.Equal(t, int64(1), g.Stats().Waited)
	})
}

func TestAHopelessCallIsNotAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{RefuseHopeless: true, Breaker: breaker.Config{Cooldown: 2 * time.Second, Probes: 1}})
		learnLatency(t, g)
		g.Breaker().OpenFor(2 * time.Second)
		require.ErrorIs(t, callWithDeadline(g, time.Millisecond, 0), breaker.ErrOpen, "the breaker refuses first")
		time.Sleep(2 * time.Second)
		for range 3 {
			var hopeless *weir.HopelessError
			require.ErrorAs(t, callWithDeadline(g, time.Millisecond, 0), &hopeless)
			time.Sleep(time.Second / 3)
		}
		require.Equal(t, breaker.HalfOpen, g.Breaker().State())
		require.NoError(t, callWithDeadline(g, time.Second, 50*time.Millisecond), "the probe was not taken")
		require.Equal(t, breaker.Recovering, g.Breaker().State())
	})
}

func TestFailuresDoNotMakeFastSuccesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{RefuseHopeless: true, Breaker: breaker.Config{FailureRate: breaker.Off}})
		learnLatency(t, g)
		for range 300 {
			_ = g.Run(bg(), fail) // at once
			require.Panics(t, func() { _ = g.Run(bg(), func(context.Context) error { panic("x") }) })
		}
		time.Sleep(time.Second)
		makeTestCall(t, g)
		require.ErrorIs(t, callWithDeadline(g, 10*time.Millisecond, 0), weir.ErrRefused)
		require.NoError(t, callWithDeadline(g, 60*time.Millisecond, 50*time.Millisecond))
	})
}

// deadlinePassed is a context whose deadline has passed, but whose Done channel is not closed yet.
type deadlinePassed struct{ context.Context }

func (deadlinePassed) Deadline() (time.Time, bool) { return time.Now().Add(-time.Hour), true }

func TestADeadlineThatHasPassedIsHopeless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{RefuseHopeless: true})
		require.NoError(t, g.Run(deadlinePassed{bg()}, succeed), "nothing is known yet")
		learnLatency(t, g)
		makeTestCall(t, g)
		var hopeless *weir.HopelessError
		require.ErrorAs(t, g.Run(deadlinePassed{bg()}, succeed), &hopeless)
		require.Zero(t, hopeless.Left)
	})
}

func TestEachKeyHasItsOwnEstimate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := weir.Config{RefuseHopeless: true}
		g := hosts(weir.GroupConfig{Gate: c, MaxKeys: 100})
		learnLatency(t, g.Get("slow"))
		makeTestCall(t, g.Get("slow"))
		require.ErrorIs(t, callWithDeadline(g.Get("slow"), 10*time.Millisecond, 0), weir.ErrRefused)
		require.NoError(t, callWithDeadline(g.Get("other"), 10*time.Millisecond, 0))
		metrics, _ := readMetrics(g)
		require.Equal(t, 1.0, metrics["weir.gate.hopeless_calls"])

		require.NoError(t, g.ReconfigureGates(c))
		require.ErrorIs(t, callWithDeadline(g.Get("slow"), 10*time.Millisecond, 0), weir.ErrRefused)
		require.NoError(t, g.ReconfigureGates(weir.Config{}))
		require.NoError(t, callWithDeadline(g.Get("slow"), 10*time.Millisecond, 0))
		require.NoError(t, g.ReconfigureGates(c))
		require.NoError(t, callWithDeadline(g.Get("slow"), 10*time.Millisecond, 0), "the estimate starts again")
		learnLatency(t, g.Get("slow"))
		makeTestCall(t, g.Get("slow"))
		require.ErrorIs(t, callWithDeadline(g.Get("slow"), 10*time.Millisecond, 0), weir.ErrRefused)
		require.True(t, g.Forget("slow"))
		require.NoError(t, callWithDeadline(g.Get("slow"), 10*time.Millisecond, 0), "the key starts again")
	})
}

func TestAKeyWithoutRoomRefusesNoHopelessCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gateWithoutRoom(weir.Config{RefuseHopeless: true, Breaker: breaker.Config{ConsecutiveFailures: 1}})
		learnLatency(t, g)
		for range 5 {
			require.NoError(t, callWithDeadline(g, time.Millisecond, 0))
		}
	})
}

// TestCallsWithDeadlinesLoseNothing makes calls of all kinds at once, and counts.
func TestCallsWithDeadlinesLoseNothing(t *testing.T) {
	g := weir.New("g", weir.Config{
		RefuseHopeless: true, MaxConcurrent: 4, MaxWait: 2 * time.Millisecond, Rate: limiter.PerSecond(1e6),
		Breaker: breaker.Config{FailureRate: breaker.Off},
	})
	var called, hopeless, others int64
	var mu sync.Mutex
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			for range 400 {
				ctx, cancel := context.WithTimeout(bg(), time.Duration(1+r.IntN(4))*time.Millisecond/4)
				n := int64(0)
				err := g.Run(ctx, func(ctx context.Context) error { n = 1; return answersAfter(600 * time.Microsecond)(ctx) })
				cancel()
				mu.Lock()
				called += n
				if _, ok := err.(*weir.HopelessError); ok { //nolint:errorlint // Run returns it as it is
					hopeless++
				} else if n == 0 {
					others++
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	t.Logf("%d called, %d hopeless, %d others", called, hopeless, others)
	require.Equal(t, int64(3200), called+hopeless+others)
	metrics, _ := readMetrics(g)
	require.Equal(t, float64(hopeless), metrics["weir.gate.hopeless_calls"])
	require.Zero(t, metrics["weir.inflight.call.active"], "every slot was given back")
	require.Equal(t, called, g.Totals().Successes+g.Totals().Failures+g.Totals().Ignored)
	require.Equal(t, called, g.Stats().Allowed+g.Stats().Waited)
}

// Callers whose deadlines are too short do not open the breaker of a gate that they share with
// others.
func TestAGateStaysClosedForCallersInAHurry(t *testing.T) {
	for name, c := range map[string]weir.Config{
		"breaker":        {},
		"limiter":        {Rate: limiter.PerSecond(1000)},
		"waits":          {Rate: limiter.PerSecond(1000), MaxWait: time.Second},
		"max concurrent": {MaxConcurrent: 1000},
		"slow calls":     {Breaker: breaker.Config{SlowCall: time.Second, Latency: true}},
	} {
		gates := map[string]func() *weir.Gate{
			"gate":         func() *weir.Gate { return weir.New("service", c) },
			"group member": func() *weir.Gate { return weir.NewGroup[string]("service", weir.GroupConfig{Gate: c}).Get("k") },
		}
		for kind, gate := range gates {
			t.Run(name+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testShortDeadlines(t, gate()) })
			})
		}
	}
}

func testShortDeadlines(t *testing.T, g *weir.Gate) {
	var group sync.WaitGroup
	defer group.Wait()
	var bad atomic.Int64
	for i := range 1500 {
		group.Go(func() {
			allowed := 11 * time.Millisecond
			if i%3 == 0 {
				allowed = time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), allowed)
			defer cancel()
			err := g.Run(ctx, func(ctx context.Context) error {
				select {
				case <-time.After(50 * time.Millisecond):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
			if i%3 == 0 && err != nil {
				bad.Add(1)
			}
		})
		time.Sleep(10 * time.Millisecond)
	}
	group.Wait()
	require.Zero(t, bad.Load())
	total := g.Breaker().Totals()
	require.Equal(t, int64(500), total.Successes)
	require.Greater(t, total.Ignored, int64(990))
}
