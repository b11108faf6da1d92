package weir_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// heldFor returns how long a gate is held after its service has asked to wait for d.
func heldFor(t *testing.T, g *weir.Gate, d time.Duration) time.Duration {
	t.Helper()
	_, err := g.Allow(t.Context())
	held := weir.RetryAfter(err)
	require.GreaterOrEqual(t, held, d)
	require.Less(t, held, d+d/10)
	return held
}

// withExactHold returns a config whose gate is held for exactly as long as its service asks.
func withExactHold(c weir.Config) weir.Config {
	c.Breaker.CooldownJitter = breaker.Off
	return c
}

func TestEveryGateAndMethodObeysAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, g := range everyGate() {
			time.Sleep(time.Second)
			calls := 0
			g.Hold(5 * time.Second)
			held := heldFor(t, g, 5*time.Second)
			bound := ""
			if strings.HasSuffix(name, "time to wait") {
				bound = ": MaxWait is 1s"
			}
			for verb, call := range verbs {
				err := call(t.Context(), g, func() { calls++ })
				require.Zerof(t, calls, "%s: %s called the service", name, verb)
				require.ErrorIs(t, err, weir.ErrRefused)
				require.ErrorIs(t, err, limiter.ErrLimited)
				var e *limiter.LimitedError
				require.ErrorAs(t, err, &e)
				require.Equalf(t, limiter.Held, e.Reason, "%s: %s", name, verb)
				require.Equal(t, held, weir.RetryAfter(err))
				require.Equal(t, fmt.Sprintf("%q: the service asked to wait%s, retry after %v", g.Name(), bound, held.Round(time.Millisecond)), err.Error())
			}
			time.Sleep(held - time.Nanosecond)
			if !strings.HasSuffix(name, "time to wait") {
				require.Errorf(t, g.Run(t.Context(), succeed), "%s: one nanosecond before the end", name)
			}
			time.Sleep(time.Millisecond)
			for verb, call := range verbs {
				require.NoErrorf(t, call(t.Context(), g, func() { calls++ }), "%s: %s after the hold", name, verb)
				time.Sleep(time.Millisecond)
			}
			require.Equal(t, len(verbs), calls, name)
		}
	})
}

func TestHoldAffectsOnlyItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := hosts(weir.GroupConfig{Gate: withExactHold(weir.Config{})})
		kept := g.Get("a")
		g.Get("a").Hold(time.Second)
		require.ErrorIs(t, kept.Run(t.Context(), succeed), weir.ErrRefused, "all gates of a key are held")
		require.NoError(t, g.Get("b").Run(t.Context(), succeed))
		g.Get("b").Hold(time.Minute)
		time.Sleep(time.Second)
		require.NoError(t, kept.Run(t.Context(), succeed), "another key is held for longer")
		require.ErrorIs(t, g.Get("b").Run(t.Context(), succeed), weir.ErrRefused)
	})
}

func TestHoldDoesNotShortenAnEarlierHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, g := range []*weir.Gate{weir.New("g", withExactHold(weir.Config{})), hosts(weir.GroupConfig{Gate: withExactHold(weir.Config{})}).Get("a")} {
			for _, d := range []time.Duration{0, -1, math.MinInt64} {
				g.Hold(d)
				require.NoError(t, g.Run(t.Context(), succeed))
			}
			g.Hold(time.Minute)
			for _, d := range []time.Duration{time.Second, 0, -time.Hour} {
				g.Hold(d)
				require.Equal(t, time.Minute, weir.RetryAfter(g.Run(t.Context(), succeed)))
			}
			g.Hold(math.MaxInt64)
			time.Sleep(100 * 365 * 24 * time.Hour)
			require.ErrorIs(t, g.Run(t.Context(), succeed), weir.ErrRefused)
		}
	})
}

// Package variables are initialized outside any bubble, on the real clock.
var (
	gateOfRealClock  = weir.New("g", withExactHold(weir.Config{}))
	groupOfRealClock = weir.NewGroup[string]("g", weir.GroupConfig{Gate: withExactHold(weir.Config{})})
)

func TestHoldInABubbleOfAGateFromOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, g := range []*weir.Gate{gateOfRealClock, groupOfRealClock.Get("a")} {
			g.Hold(time.Minute)
			require.Equal(t, time.Minute, weir.RetryAfter(g.Run(t.Context(), succeed)))
			time.Sleep(time.Minute)
			require.NoError(t, g.Run(t.Context(), succeed))
		}
	})
}

func TestNaNKeyIsNotHeld(t *testing.T) {
	g := weir.NewGroup[float64]("g", weir.GroupConfig{})
	g.Get(math.NaN()).Hold(time.Hour)
	require.NoError(t, g.Get(math.NaN()).Run(t.Context(), succeed))
}

// An unlimited rate has no queue that could be held.
func unlimited(maxWait time.Duration) *weir.Gate {
	return weir.New("g", withExactHold(weir.Config{Rate: limiter.Unlimited(), MaxWait: maxWait}))
}

func TestCallWaitsForTheEndOfAHold(t *testing.T) {
	for name, g := range map[string]func() *weir.Gate{
		"a rate": func() *weir.Gate {
			return weir.New("g", withExactHold(weir.Config{Rate: limiter.PerSecond(1), MaxWait: 10 * time.Second}))
		},
		"an unlimited rate": func() *weir.Gate { return unlimited(10 * time.Second) },
		"a key without room": func() *weir.Gate {
			return gateWithoutRoom(withExactHold(weir.Config{Rate: limiter.PerSecond(10), MaxWait: 10 * time.Second}))
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := g()
			time.Sleep(time.Minute)
			began := time.Now()
			g.Hold(4 * time.Second)
			require.NoError(t, g.Run(t.Context(), succeed))
			require.Equal(t, 4*time.Second, time.Since(began), name)
			g.Hold(20 * time.Second)
			err := g.Run(t.Context(), succeed)
			require.Equal(t, 4*time.Second, time.Since(began), "the hold is longer than MaxWait, so the call is refused at once")
			require.ErrorContains(t, err, "the service asked to wait: MaxWait is 10s, retry after 20s")
			require.EqualValues(t, 1, g.Stats().Waited)
			require.Zero(t, g.Stats().Waiting)
		})
	}
}

// A call stops waiting for the end of a hold if another hold makes the wait too long, the breaker
// opens or the caller cancels.
func TestCallStopsWaitingForAHoldEarly(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(g *weir.Gate, cancel func())
		err       error
		latest    time.Duration
	}{
		"another hold":    {func(g *weir.Gate, _ func()) { g.Hold(time.Hour) }, limiter.ErrLimited, 3 * time.Second},
		"an open breaker": {func(g *weir.Gate, _ func()) { g.Breaker().Force(breaker.ForcedOpen, "") }, breaker.ErrOpen, time.Second},
		"its caller":      {func(_ *weir.Gate, cancel func()) { cancel() }, context.Canceled, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := unlimited(3 * time.Second)
			g.Hold(2 * time.Second)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			time.AfterFunc(time.Second, func() { c.meanwhile(g, cancel) })
			began := time.Now()
			require.ErrorIs(t, g.Run(ctx, succeed), c.err, name)
			require.LessOrEqual(t, time.Since(began), c.latest, name)
			require.Zero(t, g.Stats().Waiting)
		})
	}
}

func TestDeadlineBeforeTheEndOfAHoldRefusesAtOnce(t *testing.T) {
	for name, g := range map[string]func() *weir.Gate{
		"a rate":            func() *weir.Gate { return weir.New("g", weir.Config{Rate: limiter.PerSecond(1), MaxWait: time.Minute}) },
		"an unlimited rate": func() *weir.Gate { return unlimited(time.Minute) },
	} {
		synctest.Test(t, func(t *testing.T) {
			g := g()
			g.Hold(10 * time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			err := g.Run(ctx, succeed)
			require.Zero(t, time.Since(began), name)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, err, weir.ErrRefused)
		})
	}
}

func TestHeldCallSpendsNeitherTokenNorProbeSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{
			Rate: limiter.Per(1, time.Hour), Burst: 3, Breaker: breaker.Config{CooldownJitter: breaker.Off, ConsecutiveFailures: 1, Probes: 1, Cooldown: time.Second, MaxRetryAfter: breaker.Off},
		})
		require.ErrorIs(t, g.Run(t.Context(), fail), errDown)
		g.Hold(time.Minute)
		require.ErrorIs(t, g.Run(t.Context(), succeed), breaker.ErrOpen, "the breaker is checked first")
		time.Sleep(2 * time.Second)
		for range 5 {
			require.ErrorIs(t, g.Run(t.Context(), succeed), limiter.ErrLimited)
		}
		time.Sleep(time.Minute)
		require.NoError(t, g.Run(t.Context(), succeed), "the probe slot is free")
		require.EqualValues(t, 5, g.Stats().Refused)
	})
}

func TestHeldCallsAreCounted(t *testing.T) {
	g, group := weir.New("g", weir.Config{}), hosts(weir.GroupConfig{})
	for _, shows := range []struct {
		gate   *weir.Gate
		source stat.Source
	}{{g, g}, {group.Get("a"), group}} {
		before, _ := readMetrics(shows.source)
		require.NotContains(t, before, "weir.limiter.requests")
		shows.gate.Hold(time.Hour)
		for range 3 {
			require.Error(t, shows.gate.Run(t.Context(), succeed))
		}
		require.Equal(t, limiter.Stats{Refused: 3}, shows.gate.Stats())
		after, _ := readMetrics(shows.source)
		require.InDelta(t, 3, after["weir.limiter.requests"], 0)
		require.Zero(t, shows.gate.Totals().Refused, "the breaker has refused no call")
	}
}

func TestHeldCallsAllocateNothing(t *testing.T) {
	for name, g := range everyGate() {
		g.Hold(time.Hour)
		_ = g.Run(bg(), succeed)
		require.Zerof(t, testing.AllocsPerRun(100, func() { _ = g.Run(bg(), succeed) }), name)
	}
}

// Many goroutines call and hold many keys. No key is called while it is held.
func TestNoCallPassesAHold(t *testing.T) {
	g := hosts(weir.GroupConfig{MaxKeys: 8})
	var until [16]atomic.Int64
	var passed atomic.Int64
	epoch := time.Now()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 2000 {
				k := (i + n) % len(until)
				gate := g.Get(fmt.Sprint(k))
				before := int64(time.Since(epoch))
				held := until[k].Load()
				err := gate.Run(bg(), succeed)
				if err == nil {
					passed.Add(1)
				}
				if err == nil && k < 4 && int64(time.Since(epoch)) < held && before < held {
					t.Errorf("key %d was called during its hold", k)
				}
				if n%64 == 0 && k < 4 { // fewer keys than the table has room for
					at := int64(time.Since(epoch) + 100*time.Microsecond)
					gate.Hold(150 * time.Microsecond)
					until[k].Store(max(at, until[k].Load()))
				}
			}
		})
	}
	wg.Wait()
	require.NotZero(t, passed.Load())
}

func TestHoldHoldsANamedLimiter(t *testing.T) {
	bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(100)})
	g := weir.Join("g", weir.Parts{Breaker: breaker.New("g", breaker.Config{}), Limiter: limiter.NewJoint("g", bucket)})
	g.Hold(time.Hour)
	require.False(t, bucket.Take(1).OK)
	values, _ := readMetrics(g)
	require.InDelta(t, 1, values["weir.limiter.period"], 0)
}

func TestHoldRefusesCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", withExactHold(weir.Config{Rate: limiter.PerSecond(100)}))
		g.Hold(time.Minute)
		err := g.Run(t.Context(), succeed)
		require.ErrorIs(t, err, limiter.ErrLimited)
		require.Equal(t, time.Minute, weir.RetryAfter(err))
		time.Sleep(time.Minute)
		require.NoError(t, g.Run(t.Context(), succeed))
	})
}

// A hold that is evicted is counted, whatever limits the group has.
func TestEvictedHoldsAreCounted(t *testing.T) {
	for name, c := range map[string]weir.Config{
		"no limits": {}, "a rate": {Rate: limiter.PerSecond(1)}, "a bound on calls in flight": {MaxConcurrent: 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := hosts(weir.GroupConfig{Gate: c, MaxKeys: 4})
			for i := range 10 {
				g.Get(fmt.Sprint(i)).Hold(time.Hour)
			}
			noRoom := 0.0
			for s, v := range g.Observe {
				if s.Instrument == instrument.LimiterNoRoom {
					noRoom += v
				}
			}
			if c.Rate != (limiter.Rate{}) { // the buckets are held too
				require.Zero(t, noRoom)
				for i := range 10 {
					require.ErrorIs(t, g.Get(fmt.Sprint(i)).Run(bg(), succeed), limiter.ErrLimited)
				}
				return
			}
			require.InDelta(t, 6, noRoom, 0)
		})
	}
}

// endOfHold returns when a gate that is held stops refusing.
func endOfHold(t *testing.T, g *weir.Gate) time.Time {
	t.Helper()
	_, err := g.Allow(t.Context())
	require.ErrorIs(t, err, weir.ErrRefused)
	return time.Now().Add(weir.RetryAfter(err))
}

func TestGatesWithTheSameRetryAfterResumeAtDifferentTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var early, late int
		ends := make([]time.Time, 0, 1000)
		for range 1000 { // answers of the service that say the same moment
			g := weir.New("g", weir.Config{})
			time.Sleep(time.Microsecond)
			g.Hold(10 * time.Second)
			at := endOfHold(t, g)
			require.False(t, at.Before(time.Now().Add(10*time.Second)), "no gate comes before the time that was asked for")
			require.True(t, at.Before(time.Now().Add(11*time.Second)))
			ends = append(ends, at)
			switch share := time.Until(at) - 10*time.Second; {
			case share < 500*time.Millisecond:
				early++
			default:
				late++
			}
		}
		require.InDelta(t, 500, early, 80)
		require.InDelta(t, 500, late, 80)
		slices.SortFunc(ends, time.Time.Compare)
		for i := range len(ends) - 50 {
			require.Greater(t, ends[i+50].Sub(ends[i]), 10*time.Millisecond, "no 10 ms has more than 5 % of the gates")
		}
	})
}

// If a service answers many calls of a process with the same moment, the hold must not end at the
// latest time that the random shares allow.
func TestAllWaitsOfAHoldAreStretchedAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, g := range []*weir.Gate{weir.New("g", weir.Config{}), hosts(weir.GroupConfig{}).Get("a")} {
			moment := time.Now().Add(20 * time.Second)
			g.Hold(time.Until(moment))
			first := endOfHold(t, g)
			for range 100 {
				time.Sleep(time.Millisecond)
				g.Hold(time.Until(moment))
			}
			require.Equal(t, first, endOfHold(t, g))

			shares := map[time.Duration]bool{}
			for range 20 { // each hold draws a new share
				time.Sleep(time.Hour)
				g.Hold(time.Minute)
				shares[time.Until(endOfHold(t, g))] = true
			}
			require.Greater(t, len(shares), 15)
		}
	})
}

func TestCooldownJitterBoundsTheStretchOfAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exactly := weir.New("g", withExactHold(weir.Config{}))
		exactly.Hold(time.Minute)
		require.Equal(t, time.Minute, time.Until(endOfHold(t, exactly)))

		longest := time.Duration(0)
		for range 200 {
			g := weir.New("g", weir.Config{Breaker: breaker.Config{CooldownJitter: 1}})
			time.Sleep(time.Microsecond)
			g.Hold(time.Minute)
			held := time.Until(endOfHold(t, g))
			require.GreaterOrEqual(t, held, time.Minute)
			require.Less(t, held, 2*time.Minute)
			longest = max(longest, held)
		}
		require.Greater(t, longest, 110*time.Second)

		g := weir.New("g", weir.Config{Breaker: breaker.Config{CooldownJitter: 1}})
		g.Hold(math.MaxInt64)
		time.Sleep(100 * 365 * 24 * time.Hour)
		_, err := g.Allow(t.Context())
		require.ErrorIs(t, err, weir.ErrRefused, "no overflow")
	})
}
