package weir_test

import (
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
	var permits []*breaker.Permit
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
			p.Record(breaker.Success)
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
		require.Positive(t, g.Admissions().Refused)
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
	require.EqualValues(t, 10, g.Admissions().Allowed)
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
