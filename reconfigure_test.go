package weir_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
)

// countAllowed makes n calls, one after another, and returns how many of them the gate allows.
func countAllowed(g *weir.Gate, n int) (k int) {
	for range n {
		if g.Run(bg(), succeed) == nil {
			k++
		}
	}
	return k
}

// occupySlots makes n calls that do not end until release is called, and returns how many of them
// the gate allows.
func occupySlots(t *testing.T, g *weir.Gate, n int) (k int, release func()) {
	t.Helper()
	var permits []*weir.Permit
	for range n {
		permit, err := g.Allow(bg())
		if err == nil {
			permits = append(permits, &permit)
			continue
		}
		require.ErrorIs(t, err, weir.ErrRefused)
	}
	return len(permits), func() {
		for _, p := range permits {
			p.Record(bg(), nil, breaker.Success)
		}
	}
}

func TestReconfigureChangesARate(t *testing.T) {
	perSecond := func(n float64, burst int) weir.Config {
		return weir.Config{Rate: limiter.PerSecond(n), Burst: burst}
	}
	for name, c := range map[string]struct {
		before, after weir.Config
		spent         int // before the change
		now, later    int // allowed of 1000 right after the change, and one second after that
	}{
		"higher: the bucket keeps its tokens": {perSecond(10, 10), perSecond(100, 100), 4, 6, 100},
		"lower: tokens above Burst are lost":  {perSecond(100, 100), perSecond(10, 10), 4, 10, 10},
		"lower: no token is added":            {perSecond(100, 100), perSecond(10, 10), 100, 0, 10},
		"the default Burst follows the Rate":  {perSecond(10, 0), perSecond(20, 0), 10, 0, 20},
		"the same":                            {perSecond(10, 10), perSecond(10, 10), 4, 6, 10},
		"Burst alone":                         {perSecond(10, 10), perSecond(10, 50), 4, 6, 10},
		"added":                               {weir.Config{}, perSecond(10, 10), 500, 10, 10},
		"removed":                             {perSecond(10, 10), weir.Config{}, 10, 1000, 1000},
		"off":                                 {perSecond(10, 10), perSecond(10, limiter.Off), 0, 0, 0},
		"a bound besides":                     {perSecond(10, 10), weir.Config{Rate: limiter.PerSecond(10), Burst: 10, MaxConcurrent: 3}, 4, 6, 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := weir.New("g", c.before)
				require.Equal(t, c.spent, countAllowed(g, c.spent))
				require.NoError(t, g.Reconfigure(c.after))
				require.Equal(t, c.now, countAllowed(g, 1000))
				time.Sleep(time.Second)
				require.Equal(t, c.later, countAllowed(g, 1000))
				require.Equal(t, c.after.Rate == limiter.Rate{}, g.Limiter() == nil)
			})
		})
	}
}

func TestReconfigureChangesABound(t *testing.T) {
	fixed := func(n int) weir.Config { return weir.Config{MaxConcurrent: n} }
	adaptive := func(n int) weir.Config { return weir.Config{MaxConcurrent: n, Adaptive: true} }
	for name, c := range map[string]struct {
		before, after weir.Config
		first, second int // calls that begin before and after the change, of 40 each
		third         int // calls that begin when the first have ended
	}{
		"higher":             {fixed(10), fixed(15), 10, 5, 10},
		"lower":              {fixed(10), fixed(5), 10, 0, 5},
		"added":              {fixed(0), fixed(5), 40, 5, 0},
		"removed":            {fixed(5), fixed(0), 5, 40, 40},
		"fixed to adaptive":  {fixed(10), adaptive(10), 10, 0, 10},
		"adaptive to fixed":  {adaptive(10), fixed(10), 10, 0, 10},
		"adaptive to lower":  {adaptive(10), fixed(4), 10, 0, 4},
		"adaptive to higher": {adaptive(10), adaptive(30), 10, 20, 10},
		"adaptive removed":   {adaptive(10), fixed(0), 10, 40, 40},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := weir.New("g", c.before)
				n, end := occupySlots(t, g, 40)
				require.Equal(t, c.first, n)
				require.NoError(t, g.Reconfigure(c.after))
				n, endSecond := occupySlots(t, g, 40)
				require.Equal(t, c.second, n)
				end()
				n, endThird := occupySlots(t, g, 40)
				require.Equal(t, c.third, n)
				endSecond()
				endThird()
				require.NoError(t, g.Reconfigure(fixed(40)))
				n, end = occupySlots(t, g, 60)
				require.Equal(t, 40, n, "no slot is lost")
				end()
			})
		})
	}
}

// Removing a limit for a moment adds no tokens.
func TestARateThatIsRemovedAndAddedAgainContinuesWithItsTokens(t *testing.T) {
	c := weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 10}
	g := weir.New("g", c)
	require.Equal(t, 8, countAllowed(g, 8))
	bucket := g.Limiter()
	require.NoError(t, g.Reconfigure(weir.Config{}))
	require.Equal(t, 5, countAllowed(g, 5))
	require.NoError(t, g.Reconfigure(c))
	require.Equal(t, 2, countAllowed(g, 100))
	require.Same(t, bucket, g.Limiter())
}

// Calls under a fixed bound are not timed. If an adaptive bound learned from them as if they had
// lasted an hour, every later call would seem fast.
func TestAnAdaptiveBoundDoesNotLearnFromCallsThatBeganBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{MaxConcurrent: 1000})
		time.Sleep(time.Hour)
		n, end := occupySlots(t, g, 50)
		require.Equal(t, 50, n)
		require.NoError(t, g.Reconfigure(weir.Config{MaxConcurrent: 1000, Adaptive: true}))
		end()
		for range 100 {
			require.NoError(t, g.Run(bg(), answersAfter(10*time.Millisecond)))
		}
		for range 500 { // a service that hangs
			time.Sleep(10 * time.Millisecond)
			go func() { _ = g.Run(bg(), answersAfter(5*time.Second)) }()
		}
		time.Sleep(10 * time.Second)
		require.Positive(t, g.Stats().Refused)
	})
}

// The slots of calls in flight are remembered while there is no bound.
func TestABoundThatIsRemovedAndAddedAgainCountsCallsInFlight(t *testing.T) {
	g := weir.New("g", weir.Config{MaxConcurrent: 5})
	n, end := occupySlots(t, g, 4)
	require.Equal(t, 4, n)
	require.NoError(t, g.Reconfigure(weir.Config{}))
	require.NoError(t, g.Reconfigure(weir.Config{MaxConcurrent: 5, Adaptive: true}))
	n, endSecond := occupySlots(t, g, 10)
	require.Equal(t, 1, n)
	end()
	endSecond()
	n, _ = occupySlots(t, g, 10)
	require.Equal(t, 5, n)
	require.EqualValues(t, 10, g.Stats().Allowed)
}

func TestReconfigureKeepsTheStateOfTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{Breaker: breaker.Config{MinCalls: 1, Cooldown: time.Hour}})
		require.ErrorIs(t, g.Run(bg(), fail), errDown)
		require.NoError(t, g.Reconfigure(weir.Config{Rate: limiter.PerSecond(1), Breaker: breaker.Config{Cooldown: time.Minute}}))
		require.ErrorIs(t, g.Run(bg(), succeed), breaker.ErrOpen)
		require.Equal(t, 1, g.Limiter().Take(0).Remaining)
		require.EqualValues(t, 1, g.Totals().Failures)
	})
}

// A callback for a transition may change the config.
func TestReconfigureInACallbackOfReconfigure(t *testing.T) {
	var g *weir.Gate
	last := weir.Config{MaxConcurrent: 7}
	changes := 0
	c := weir.Config{Breaker: breaker.Config{MinCalls: 1, Cooldown: time.Nanosecond, OnChange: func(c breaker.Change) {
		if changes++; c.To == breaker.Closed {
			require.NoError(t, g.Reconfigure(last))
		}
	}}}
	g = weir.New("g", c)
	require.ErrorIs(t, g.Run(bg(), fail), errDown)
	require.NoError(t, g.Run(bg(), succeed)) // a probe
	require.Equal(t, breaker.Recovering, g.Breaker().State())
	c.Breaker.Recovery = breaker.Off
	require.NoError(t, g.Reconfigure(c))
	require.Equal(t, breaker.Closed, g.Breaker().State())
	n, _ := occupySlots(t, g, 10)
	require.Equal(t, 7, n)
}

func TestReconfigureSwitchesRefuseHopeless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		g := weir.New("g", weir.Config{})
		learnLatency(t, g)
		require.NoError(t, g.Reconfigure(weir.Config{RefuseHopeless: true}))
		makeTestCall(t, g)
		require.NoError(t, callWithDeadline(g, 10*ms, 0), "it knows nothing yet")
		learnLatency(t, g)
		require.NoError(t, g.Reconfigure(weir.Config{RefuseHopeless: true, MaxConcurrent: 10}))
		makeTestCall(t, g)
		_, hopeless := errorsAs[*weir.HopelessError](callWithDeadline(g, 10*ms, 0))
		require.True(t, hopeless, "it keeps the estimate")
		require.NoError(t, g.Reconfigure(weir.Config{}))
		require.NoError(t, callWithDeadline(g, 10*ms, 0))
	})
}

func TestReconfigureRefuses(t *testing.T) {
	joined := weir.Join("j", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), InFlight: inflight.New(inflight.Config{Limit: 3})})
	require.EqualError(t, joined.Reconfigure(weir.Config{}), `weir: gate "j" was made by Join, its Parts must be changed instead`)
	member := weir.NewGroup[string]("hosts", weir.GroupConfig{}).Get("a")
	require.EqualError(t, member.Reconfigure(weir.Config{}), `weir: a gate of group "hosts" cannot be changed alone, use Group.Reconfigure`)

	synctest.Test(t, func(t *testing.T) {
		c := weir.Config{Rate: limiter.PerSecond(3), MaxConcurrent: 2}
		g := weir.New("g", c)
		for _, bad := range []weir.Config{
			{MaxWait: -1},
			{Rate: limiter.PerSecond(-1)},
			{Rate: limiter.PerSecond(1000), Burst: -2},
			{MaxConcurrent: -1},
			{MaxWait: 1},
			{Rate: limiter.PerSecond(1000), Breaker: breaker.Config{FailureRate: 2}},
		} {
			require.EqualError(t, g.Reconfigure(bad), bad.Validate().Error())
		}
		n, end := occupySlots(t, g, 10)
		require.Equal(t, 2, n, "nothing was changed")
		end()
		require.Equal(t, 1, countAllowed(g, 10))
	})
}

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
				require.EqualValues(t, 3, g.Stats().Waiting)
				time.Sleep(500 * ms)
				require.NoError(t, g.Reconfigure(c.after))
				took, made := wait()
				require.Equal(t, c.made, made)
				for i := range took {
					require.InDelta(t, c.took[i].Seconds(), took[i].Seconds(), 1e-6, "call %d", i)
				}
				require.Zero(t, g.Stats().Waiting)
				permit.Record(bg(), nil, breaker.Success)
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
		require.EqualValues(t, 1, g.Stats().Refused)
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
		permit.Record(bg(), nil, breaker.Success)
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
		require.EqualValues(t, 1, g.Stats().Waiting)
		cancel()
		all.Wait()
		permit.Record(bg(), nil, breaker.Success)
		require.Equal(t, 1, g.Limiter().Take(0).Remaining, "it gave the token back")
		require.Equal(t, limiter.Stats{Allowed: 1, Cancelled: 1}, g.Stats())
	})
}

// A gate that is kept obeys a later Reconfigure of its group.
func TestGroupReconfigureChangesPresentAndFutureGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := hosts(weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(1), Burst: 1}})
		kept := g.Get("kept")
		require.NoError(t, kept.Run(bg(), succeed))
		require.ErrorIs(t, kept.Run(bg(), succeed), limiter.ErrLimited)
		require.NoError(t, g.ReconfigureGates(weir.Config{
			Rate: limiter.PerSecond(10), Burst: 5, MaxWait: time.Minute, Breaker: breaker.Config{ConsecutiveFailures: 2},
		}))
		for _, gate := range []*weir.Gate{kept, g.Get("late")} {
			for range 20 {
				require.NoError(t, gate.Run(bg(), succeed), "the call waits")
			}
			for range 2 {
				require.ErrorIs(t, gate.Run(bg(), fail), errDown)
			}
			require.ErrorIs(t, gate.Run(bg(), succeed), breaker.ErrOpen)
		}
		require.Positive(t, g.Stats().Waited)
		waits := int64(0)
		for s, h := range g.Histograms {
			if s.Instrument.Name == "weir.limiter.wait.duration" {
				waits = h.Count()
			}
		}
		require.Equal(t, g.Stats().Waited, waits)
	})
}

func TestGroupReconfigureChangesNothingOnError(t *testing.T) {
	limited := hosts(weir.GroupConfig{Gate: weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 3}})
	strict := breaker.Config{ConsecutiveFailures: 1}
	for i, c := range []struct {
		with weir.Config
		want string
	}{
		{weir.Config{Rate: limiter.PerSecond(5), MaxWait: -1, Breaker: strict}, "weir: MaxWait is -1ns, must be at least 0"},
		{weir.Config{Rate: limiter.PerSecond(-5), Breaker: strict}, "must be"},
		{weir.Config{MaxConcurrent: -1, Breaker: strict}, "weir: MaxConcurrent is -1"},
	} {
		require.ErrorContains(t, limited.ReconfigureGates(c.with), c.want)
		gate := limited.Get(fmt.Sprint(i))
		require.ErrorIs(t, gate.Run(bg(), fail), errDown)
		require.NoError(t, gate.Run(bg(), succeed))
		require.NoError(t, gate.Run(bg(), succeed))
		require.ErrorIs(t, gate.Run(bg(), succeed), limiter.ErrLimited)
	}
	require.NoError(t, limited.ReconfigureGates(weir.Config{Rate: limiter.Unlimited()}))
	for range 100 {
		require.NoError(t, limited.Get("a").Run(bg(), succeed))
	}
}

func TestReconfigureChangesMaxConcurrent(t *testing.T) {
	withBothBounds(t, func(t *testing.T, c weir.Config) {
		g := hosts(weir.GroupConfig{Gate: c})
		a := g.Get("a")
		c.MaxConcurrent = 2
		require.NoError(t, g.ReconfigureGates(c))
		for _, gate := range []*weir.Gate{a, g.Get("b")} {
			require.NoError(t, gate.Run(bg(), func(context.Context) error {
				return gate.Run(bg(), func(context.Context) error {
					require.ErrorIs(t, gate.Run(bg(), succeed), inflight.ErrFull)
					return nil
				})
			}))
		}
		values, _ := readMetrics(g)
		require.InDelta(t, 2, values["weir.inflight.limit"], 0)
	})
}

// gatesOfEveryKind returns a group, and two of its gates that were made before a change: for a key
// in the group, and for a key without room.
func gatesOfEveryKind(t *testing.T, c weir.Config) (*weir.Group[string], map[string]*weir.Gate) {
	c.Breaker.ConsecutiveFailures = 1
	g := hosts(weir.GroupConfig{Gate: c, MaxKeys: 2, MaxSeries: breaker.Off})
	gates := map[string]*weir.Gate{"present": g.Get("present")}
	_ = gates["present"].Run(bg(), fail) // an open breaker is not evicted
	_ = g.Get("other").Run(bg(), fail)
	gates["without room"] = g.Get("without room")
	require.Equal(t, 2, g.Len())
	time.Sleep(time.Hour)
	for _, key := range []string{"present", "other"} { // half-open, recovering and closed again
		for range 40 {
			_ = g.Get(key).Run(bg(), succeed)
			time.Sleep(time.Minute)
		}
		require.Equal(t, breaker.Closed, g.Get(key).Breaker().State())
	}
	return g, gates
}

func TestAGroupGetsAndLosesARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited := weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 2}
		g, gates := gatesOfEveryKind(t, weir.Config{})
		requireAllowed := func(n int) {
			t.Helper()
			permit, err := gates["present"].Allow(bg()) // so that another key makes room
			require.NoError(t, err)
			gates["new"] = g.Get("new")
			permit.Record(bg(), nil, breaker.Success)
			for name, gate := range gates {
				for range n {
					require.NoError(t, gate.Run(bg(), succeed), name)
				}
			}
		}
		requireAllowed(5)
		require.NoError(t, g.ReconfigureGates(limited))
		for name, gate := range gates {
			if name == "without room" || name == "new" {
				continue // they share a bucket with others
			}
			require.NoError(t, gate.Run(bg(), succeed), name)
			require.NoError(t, gate.Run(bg(), succeed), name)
			require.ErrorIs(t, gate.Run(bg(), succeed), limiter.ErrLimited, name)
		}
		for range 2 {
			_ = gates["without room"].Run(bg(), succeed)
		}
		require.ErrorIs(t, gates["without room"].Run(bg(), succeed), limiter.ErrLimited)

		require.NoError(t, g.ReconfigureGates(weir.Config{}))
		requireAllowed(5)
		require.NoError(t, g.ReconfigureGates(limited))
		require.ErrorIs(t, gates["present"].Run(bg(), succeed), limiter.ErrLimited, "the bucket was kept")
		require.ErrorIs(t, g.Get("present").Run(bg(), succeed), limiter.ErrLimited)
	})
}

func TestAGroupGetsAndLosesABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, gates := gatesOfEveryKind(t, weir.Config{})
		for name, gate := range gates {
			require.NoError(t, gate.Run(bg(), func(context.Context) error {
				// before there is a bound
				require.NoError(t, g.ReconfigureGates(weir.Config{MaxConcurrent: 1}))
				return gate.Run(bg(), func(context.Context) error {
					require.ErrorIs(t, gate.Run(bg(), succeed), inflight.ErrFull, name)
					require.NoError(t, g.ReconfigureGates(weir.Config{Adaptive: true, MaxConcurrent: 1}))
					require.ErrorIs(t, gate.Run(bg(), succeed), inflight.ErrFull, name)
					require.NoError(t, g.ReconfigureGates(weir.Config{}))
					require.NoError(t, gate.Run(bg(), succeed), name)
					require.NoError(t, g.ReconfigureGates(weir.Config{MaxConcurrent: 1}))
					if name == "present" {
						require.ErrorIs(t, gate.Run(bg(), succeed), inflight.ErrFull, "the slot in use counts again")
					}
					require.NoError(t, g.ReconfigureGates(weir.Config{}))
					return nil
				})
			}), name)
			require.NoError(t, g.ReconfigureGates(weir.Config{MaxConcurrent: 1}))
			require.Zero(t, callsInFlight(g), name)
			require.NoError(t, g.ReconfigureGates(weir.Config{}))
		}
	})
}

// A waiting call follows the config that was in effect when the call came, until Reconfigure
// replaces that config.
func TestCallsThatWaitAtAKeyFollowReconfigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 1, MaxWait: 3 * time.Hour}
		shorter := slow
		shorter.MaxWait = time.Minute
		for _, c := range []struct {
			to   weir.Config
			want error
			took time.Duration
		}{
			{weir.Config{}, nil, time.Second}, // no rate: at once
			// a faster one
			{weir.Config{Rate: limiter.Per(1, 30*time.Minute), Burst: 1, MaxWait: 3 * time.Hour}, nil, 30 * time.Minute},
			{shorter, weir.ErrRefused, time.Minute},
		} {
			g := hosts(weir.GroupConfig{Gate: slow})
			gate := g.Get("a")
			require.NoError(t, gate.Run(bg(), succeed))
			began := time.Now()
			time.AfterFunc(time.Second, func() { require.NoError(t, g.ReconfigureGates(c.to)) })
			require.ErrorIs(t, gate.Run(bg(), succeed), c.want)
			require.InDelta(t, c.took, time.Since(began), float64(time.Second), "%+v", c.to)
			require.Zero(t, g.Stats().Waiting)
		}
	})
}

// TestOnChangeMayReconfigureItsGroup lets each verb that may end the cooldown of a key cause a
// transition whose OnChange calls the group.
func TestOnChangeMayReconfigureItsGroup(t *testing.T) {
	c := weir.Config{Rate: limiter.PerSecond(100), MaxConcurrent: 5}
	for name, verb := range map[string]func(g *weir.Group[string], c weir.Config){
		"Reconfigure": func(g *weir.Group[string], c weir.Config) { _ = g.ReconfigureGates(c) },
	} {
		t.Run(name, func(t *testing.T) {
			var group *weir.Group[string]
			called := make(chan bool, 100)
			c := c
			c.Breaker.OnChange = func(ch breaker.Change) {
				if ch.To == breaker.HalfOpen && len(called) == 0 {
					called <- true
					other := c
					other.Rate, other.Breaker.MinCalls = limiter.PerSecond(10), 7
					_ = group.ReconfigureGates(other)
					group.Get("other").Hold(time.Millisecond)
					group.Forget("other")
				}
			}
			group = weir.NewGroup[string]("g", weir.GroupConfig{Gate: c})
			group.Get("k").Breaker().OpenFor(0)
			done := make(chan struct{})
			go func() {
				defer close(done)
				verb(group, c)
				_ = group.Get("k").Run(t.Context(), func(context.Context) error { return nil })
				group.Get("new")
			}()
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				require.Fail(t, "it hangs")
			}
			require.Len(t, called, 1)
		})
	}
}

// However Reconfigure is called at the same time, or by OnChange while it is under way, all parts
// have the config of the same call in the end.
func TestReconfigureInOnChangeIsTheLaterOne(t *testing.T) {
	var group *weir.Group[string]
	inner := weir.Config{Rate: limiter.PerSecond(10), Breaker: breaker.Config{ConsecutiveFailures: 2}}
	outer := weir.Config{Rate: limiter.PerSecond(20), Breaker: breaker.Config{ConsecutiveFailures: 3}}
	outer.Breaker.OnChange = func(ch breaker.Change) {
		if ch.To == breaker.HalfOpen {
			require.NoError(t, group.ReconfigureGates(inner))
		}
	}
	group = weir.NewGroup[string]("g", weir.GroupConfig{Gate: outer})
	group.Get("k").Breaker().OpenFor(0)
	require.NoError(t, group.ReconfigureGates(outer))
	b := group.Get("new").Breaker()
	for range 2 {
		require.Equal(t, breaker.Closed, b.State())
		_ = b.Run(t.Context(), func(context.Context) error { return context.DeadlineExceeded })
	}
	require.Equal(t, breaker.Open, b.State(), "the breakers have the config of OnChange")
}
