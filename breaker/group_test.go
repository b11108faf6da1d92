package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/stat"
)

type ctx = context.Context

// after is a moment so long after t0.
func after(d time.Duration) time.Time { return t0.Add(d) }

// group makes a group in which all members can be let go.
func group(most int, c breaker.Config) *breaker.Group[string] {
	return breaker.NewGroupAt[string]("g", breaker.GroupConfig{Breaker: c, MaxKeys: most, MaxSeries: breaker.Off}, t0)
}

// call makes a call to the breaker of the key that ends at once.
func call(t *testing.T, g *breaker.Group[string], u time.Time, key string, o breaker.Outcome) {
	t.Helper()
	p, err := g.GetAt(u, key).AllowAt(u)
	require.NoError(t, err)
	p.DoneAt(u, o)
}

// press asks for so many new keys, each of which wants the place of another.
func press(g *breaker.Group[string], u time.Time, keys int) {
	for i := range keys {
		g.GetAt(u, fmt.Sprint("pressing ", u.UnixNano(), " ", i))
	}
}

func TestGroupGivesEachKeyOneBreaker(t *testing.T) {
	g := breaker.NewGroup[string]("hosts", breaker.GroupConfig{Breaker: breaker.Config{MinCalls: 1}})
	a, b := g.Get("a"), g.Get("b")
	require.Same(t, a, g.Get("a"))
	require.NotSame(t, a, b)
	require.Equal(t, "hosts", a.Name())
	require.Equal(t, "hosts", g.Name())
	_ = a.Run(bg(), fail)
	require.Equal(t, breaker.Open, a.State())
	require.Equal(t, breaker.Closed, b.State())
	require.Equal(t, map[string]*breaker.Breaker{"a": a, "b": b}, maps.Collect(g.All()))
	require.Equal(t, breaker.GroupStats{Members: 2}, g.Stats())
	for range g.All() {
		break
	}
}

// Scenario 45. Keys come and go all the time and the garbage collector takes what it
// can, but whoever has a key's breaker while another has one too has the same.
func TestScenarioA45SameKeySameBreakerUnderRaces(t *testing.T) {
	g := group(8, breaker.Config{Window: time.Millisecond, Buckets: 1})
	type holders struct {
		sync.Mutex
		n int
		b *breaker.Breaker
	}
	var keys [24]holders
	var now atomic.Int64
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 0))
			for range 3000 {
				k := r.IntN(len(keys))
				u := after(time.Duration(now.Add(int64(r.IntN(200_000)))))
				b := g.GetAt(u, fmt.Sprint(k))
				if b.StateAt(u) == breaker.ForcedClosed {
					continue // unguarded: of no key
				}
				h := &keys[k]
				h.Lock()
				if h.n > 0 && h.b != b {
					t.Errorf("key %d has two breakers", k)
				}
				h.n, h.b = h.n+1, b
				h.Unlock()
				if p, err := b.AllowAt(u); err == nil {
					p.DoneAt(u, breaker.Outcome(r.IntN(3)))
				}
				runtime.Gosched()
				h.Lock()
				if h.n--; h.n == 0 {
					h.b = nil
				}
				h.Unlock()
				if r.IntN(500) == 0 {
					runtime.GC()
				}
			}
		})
	}
	wg.Wait()
	require.Positive(t, g.Stats().Evictions)
	require.Positive(t, g.Stats().Unguarded)
}

// Scenario 45. A group so small that its members are let go all the time decides as
// a map does that keeps every breaker for ever.
func TestScenarioA45EvictionChangesNoDecision(t *testing.T) {
	c := breaker.Config{MinCalls: 4, ConsecutiveFailures: 6, Window: time.Second, Cooldown: 3 * time.Second, Probes: 2, SlowCall: 100 * time.Millisecond, CooldownFactor: 2}
	g, r := group(20, c), rand.New(rand.NewPCG(4, 5))
	all := map[string]*breaker.Breaker{}
	at, refusals := time.Duration(0), 0
	for step := range 30_000 {
		at += time.Duration(r.ExpFloat64() * float64(60*time.Millisecond))
		key := fmt.Sprint(int(r.ExpFloat64() * 30))
		u := after(at.Truncate(c.Window / 10)) // so that the buckets of all breakers begin at the same times
		b := g.GetAt(u, key)
		if b.StateAt(u) == breaker.ForcedClosed {
			continue
		}
		if all[key] == nil {
			all[key] = breaker.NewAt("all", c, u)
		}
		require.Equal(t, all[key].StateAt(u), b.StateAt(u), "step %d, key %s", step, key)
		p, err := b.AllowAt(u)
		q, want := all[key].AllowAt(u)
		require.Equal(t, want == nil, err == nil, "step %d, key %s", step, key)
		if err != nil {
			refusals++
			continue
		}
		end, o := u.Add(time.Duration(r.IntN(130))*time.Millisecond), breaker.Outcome(min(r.IntN(8)/3, 2))
		if strings.HasSuffix(key, "0") {
			o = breaker.Failure
		}
		require.Equal(t, q.DoneAt(end, o), p.DoneAt(end, o))
		if step%200 == 0 {
			runtime.GC()
		}
	}
	require.Greater(t, g.Stats().Evictions, int64(200))
	require.Greater(t, refusals, 200)
}

// outstanding is the permit of a call in flight.
var outstanding breaker.Permit

// kept says whether the group still has the breaker that prepare worked on when many
// keys have wanted its place, at the time u, and the garbage collector has run.
func kept(c breaker.Config, u time.Time, prepare func(b *breaker.Breaker)) bool {
	g := group(1, c)
	w := func() weak.Pointer[breaker.Breaker] {
		b := g.GetAt(t0, "me")
		prepare(b)
		return weak.Make(b)
	}()
	for range 3 {
		press(g, u, 20)
		runtime.GC()
	}
	held := w.Value()
	runtime.KeepAlive(g)
	return held != nil
}

// at makes a call at t0 that ends later.
func at(end time.Duration, o breaker.Outcome) func(*breaker.Breaker) {
	return func(b *breaker.Breaker) {
		p, _ := b.AllowAt(t0)
		p.DoneAt(after(end), o)
	}
}

// Scenario 45.
func TestScenarioA45WhatMattersIsNeverLetGo(t *testing.T) {
	const window = 10 * time.Second
	for name, c := range map[string]struct {
		config  breaker.Config
		prepare func(*breaker.Breaker)
		at      time.Duration
		kept    bool
	}{
		"fresh, asked for a window ago": {prepare: func(*breaker.Breaker) {}, at: window},
		"fresh, asked for lately":       {prepare: func(*breaker.Breaker) {}, at: window - 1, kept: true},
		"failed a window ago":           {prepare: at(0, breaker.Failure), at: window},
		"failed since":                  {prepare: at(9*time.Second, breaker.Failure), at: 18 * time.Second, kept: true},
		"succeeded since":               {prepare: at(9*time.Second, breaker.Success), at: 18 * time.Second, kept: true},
		"slow since":                    {config: breaker.Config{SlowCall: time.Second, Window: 5 * time.Second}, prepare: at(4*time.Second, breaker.Success), at: 8 * time.Second, kept: true},
		"ignored since":                 {prepare: at(9*time.Second, breaker.Ignored), at: 18 * time.Second},
		"open":                          {config: breaker.Config{MinCalls: 1, Cooldown: time.Hour}, prepare: at(0, breaker.Failure), at: time.Minute, kept: true},
		"half-open":                     {config: breaker.Config{MinCalls: 1}, prepare: at(0, breaker.Failure), at: time.Minute, kept: true},
		"closed again":                  {config: breaker.Config{MinCalls: 1, Probes: 1}, prepare: func(b *breaker.Breaker) { at(0, breaker.Failure)(b); b.ResetAt(after(1)) }, at: time.Minute},
		"a streak that a rule looks at": {config: breaker.Config{ConsecutiveFailures: 5}, prepare: at(0, breaker.Failure), at: time.Hour, kept: true},
		"a streak that is over":         {config: breaker.Config{ConsecutiveFailures: 5}, prepare: func(b *breaker.Breaker) { at(0, breaker.Failure)(b); at(0, breaker.Success)(b) }, at: time.Hour},
		"asked to wait": {prepare: func(b *breaker.Breaker) {
			p, _ := b.AllowAt(t0)
			p.RetryAfter(time.Minute)
			p.DoneAt(t0, breaker.Failure)
		}, at: 50 * time.Second, kept: true},
		"asked to wait until now": {prepare: func(b *breaker.Breaker) {
			p, _ := b.AllowAt(t0)
			p.RetryAfter(time.Minute)
			p.DoneAt(t0, breaker.Failure)
		}, at: 61 * time.Second},
		"forced open":                        {prepare: func(b *breaker.Breaker) { b.ForceAt(t0, breaker.ForcedOpen) }, at: time.Hour, kept: true},
		"disabled":                           {prepare: func(b *breaker.Breaker) { b.ForceAt(t0, breaker.Disabled) }, at: time.Hour, kept: true},
		"on trial":                           {prepare: func(b *breaker.Breaker) { b.ForceAt(t0, breaker.Trial) }, at: time.Hour, kept: true},
		"released":                           {prepare: func(b *breaker.Breaker) { b.ForceAt(t0, breaker.ForcedOpen); b.ReleaseAt(after(1)) }, at: time.Hour},
		"of a config of its own":             {prepare: func(b *breaker.Breaker) { _ = b.Reconfigure(breaker.Config{MinCalls: 3}) }, at: time.Hour, kept: true},
		"not as it began":                    {config: breaker.Config{Initial: breaker.Open}, prepare: func(b *breaker.Breaker) { b.ResetAt(t0) }, at: time.Hour, kept: true},
		"the last calls good":                {config: breaker.Config{LastCalls: 5}, prepare: at(0, breaker.Success), at: time.Hour},
		"the last calls bad":                 {config: breaker.Config{LastCalls: 5}, prepare: at(0, breaker.Failure), at: time.Hour, kept: true},
		"the last calls slow":                {config: breaker.Config{LastCalls: 5, SlowCall: time.Second}, prepare: at(2*time.Second, breaker.Success), at: time.Hour, kept: true},
		"a call in flight":                   {prepare: func(b *breaker.Breaker) { outstanding, _ = b.AllowAt(t0) }, at: time.Hour, kept: true},
		"a call in flight that has returned": {prepare: func(b *breaker.Breaker) { p, _ := b.AllowAt(t0); p.DoneAt(t0, breaker.Success) }, at: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.kept, kept(c.config, after(c.at), c.prepare))
			outstanding = breaker.Permit{}
		})
	}
}

func TestGroupFindsABreakerThatItLetGoAndSomebodyHas(t *testing.T) {
	g := group(2, breaker.Config{})
	mine := g.GetAt(t0, "mine")
	press(g, after(time.Minute), 2)
	require.EqualValues(t, 1, g.Stats().Evictions)
	runtime.GC()
	require.Same(t, mine, g.GetAt(after(time.Minute), "mine"), "there is no place for it, but it is the one")
	require.Same(t, mine, maps.Collect(g.All())["mine"])
	require.Equal(t, 2, g.Len())
	require.Same(t, mine, g.GetAt(after(2*time.Minute), "mine"), "by now there is one")
	require.Equal(t, 2, g.Len())
	require.EqualValues(t, 2, g.Stats().Evictions)
	runtime.KeepAlive(mine)
}

// What happens to a breaker that was let go has the group keep it again: so nothing is
// lost when its holder lets go of it too.
func TestGroupKeepsABreakerAgainToWhichSomethingHappens(t *testing.T) {
	var old breaker.Permit
	for name, happen := range map[string]func(*breaker.Breaker, time.Time){
		"a late result": func(_ *breaker.Breaker, u time.Time) { require.False(t, old.DoneAt(u, breaker.Success)) },
		"a failure":     func(b *breaker.Breaker, u time.Time) { p, _ := b.AllowAt(u); p.DoneAt(u, breaker.Failure) },
		"a success":     func(b *breaker.Breaker, u time.Time) { p, _ := b.AllowAt(u); p.DoneAt(u, breaker.Success) },
		"refused":       func(b *breaker.Breaker, _ time.Time) { require.Error(t, b.Refuse("it is late")) },
		"forced":        func(b *breaker.Breaker, u time.Time) { b.ForceAt(u, breaker.Trial) },
		"opened":        func(b *breaker.Breaker, u time.Time) { b.OpenForAt(u, time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			g, u := group(1, breaker.Config{}), after(time.Minute)
			b := g.GetAt(t0, "b")
			old, _ = b.AllowAt(t0)
			b.OpenForAt(t0, 0)
			b.ResetAt(t0)
			press(g, u, 1)
			require.EqualValues(t, 1, g.Stats().Evictions)
			happen(b, u)
			require.Equal(t, 1, g.Len(), "it has no place")
			w := weak.Make(b)
			b, old = nil, breaker.Permit{}
			runtime.GC()
			require.NotNil(t, w.Value())

			released := after(24 * time.Hour)
			if w.Value().StateAt(released) == breaker.Closed { // it is idle some day, and goes for good
				press(g, released, 20)
				runtime.GC()
				require.Nil(t, w.Value())
				runtime.KeepAlive(g)
			}
		})
	}
}

func TestGroupKeepsTheMembersWithSeriesForGood(t *testing.T) {
	g := breaker.NewGroupAt[string]("g", breaker.GroupConfig{MaxKeys: 4, MaxSeries: 2}, t0)
	first := weak.Make(g.GetAt(t0, "first"))
	g.GetAt(t0, "second")
	for day := range 5 {
		press(g, after(24*time.Hour*time.Duration(day)), 10)
		runtime.GC()
	}
	require.NotNil(t, first.Value())
	require.Same(t, first.Value(), g.GetAt(after(24*time.Hour), "first"))
	require.EqualValues(t, 4*2, g.Stats().Evictions, "both other places, each day but the first")
	lines := groupLines(g)
	require.InDelta(t, 1, lines["state closed first"], 0)
	require.InDelta(t, 2, lines["state closed _other"], 0, "without those that are gone")
}

func TestGroupTakesAskingForUse(t *testing.T) {
	g := group(1, breaker.Config{})
	g.GetAt(t0, "a")
	g.GetAt(after(9*time.Second), "a")
	require.Equal(t, breaker.ForcedClosed, g.GetAt(after(12*time.Second), "b").StateAt(after(12*time.Second)))
	require.Equal(t, breaker.ForcedClosed, g.GetAt(after(21*time.Second), "b").StateAt(after(21*time.Second)))
	require.Equal(t, breaker.Closed, g.GetAt(after(22*time.Second), "b").StateAt(after(22*time.Second)),
		"a window after the group has seen that somebody asked")
}

// Breakers without a place are bounded too, but for those that others have.
func TestGroupBoundsWhatItKeepsWithoutAPlace(t *testing.T) {
	g := group(1, breaker.Config{})
	a := g.GetAt(t0, "a")
	b := g.GetAt(after(time.Minute), "b") // in the place of a
	p, _ := a.AllowAt(after(time.Minute))
	p.DoneAt(after(time.Minute), breaker.Success)
	u := after(time.Minute + 9*time.Second)
	require.Same(t, a, g.GetAt(u, "a"), "as many as have a place may be kept without one")
	u = after(time.Minute + 10*time.Second)
	p, _ = a.AllowAt(u)
	p.DoneAt(u, breaker.Success)
	g.GetAt(u, "c") // in the place of b
	require.Equal(t, breaker.ForcedClosed, g.GetAt(u, "b").StateAt(u), "one more would break the bound")
	p, _ = b.AllowAt(u)
	p.DoneAt(u, breaker.Success)
	require.Same(t, b, g.GetAt(u, "b"), "it is in use: who has it decides that")
	require.EqualValues(t, 2, g.Stats().Evictions)
}

func TestGroupPassesNewKeysUnguardedWhenNoMemberCanGo(t *testing.T) {
	g := group(2, breaker.Config{MinCalls: 1, Cooldown: 50 * time.Second})
	call(t, g, t0, "a", breaker.Failure)
	call(t, g, t0, "b", breaker.Failure)
	c := g.GetAt(after(time.Second), "c")
	require.Equal(t, breaker.ForcedClosed, c.StateAt(after(time.Second)))
	require.Same(t, c, g.GetAt(after(time.Second), "d"), "one for all")
	for range 100 {
		call(t, g, after(time.Second), "c", breaker.Failure)
	}
	require.Equal(t, breaker.GroupStats{Members: 2, Unguarded: 102}, g.Stats())
	for key := range g.All() {
		require.Contains(t, "ab", key)
	}
	_, err := g.GetAt(after(time.Second), "a").AllowAt(after(time.Second))
	require.ErrorIs(t, err, breaker.ErrOpen, "members go on")

	for _, key := range []string{"a", "b"} {
		g.GetAt(after(time.Minute), key).ResetAt(after(time.Minute))
	}
	press(g, after(time.Minute), 1)
	require.NotSame(t, c, g.GetAt(after(2*time.Minute), "c"), "now there is room")
	require.EqualValues(t, 103, g.Stats().Unguarded)
}

// A million keys, of which the last ten thousand or so have been in use lately.
func TestGroupIsBoundedWithAMillionKeys(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the garbage collector has no processor of its own
	const most, keys = 10_000, manyKeys
	g := breaker.NewGroupAt[int]("g", breaker.GroupConfig{}, t0)
	before := heap()
	for i := range keys {
		u := after(time.Duration(i) * 2 * time.Millisecond)
		p, err := g.GetAt(u, i).AllowAt(u)
		require.NoError(t, err)
		p.DoneAt(u, breaker.Success)
		if i%1000 == 0 {
			require.LessOrEqual(t, g.Len(), most)
		}
	}
	grown := heap() - before
	s := g.Stats()
	t.Logf("%d members in %d KB, %d bytes each; %d evictions, %d unguarded", s.Members, grown>>10, grown/s.Members, s.Evictions, s.Unguarded)
	require.InDelta(t, most, s.Members, most/20)
	require.Greater(t, s.Evictions, int64(keys-2*most))
	require.Less(t, s.Unguarded, int64(keys/1000))
	require.Less(t, grown, most*6000)

	total := 0.0
	g.Observe(func(line *stat.Series, v float64) {
		if line.Instrument == stat.BreakerCalls {
			total += v
		}
	})
	require.InDelta(t, keys, total, 0, "no call is lost to the sums")

	// All of them fail now, so none can go, and what is new is not guarded.
	for i := range keys / 10 {
		u := after(time.Hour + time.Duration(i)*10*time.Microsecond)
		p, err := g.GetAt(u, -i-1).AllowAt(u)
		require.NoError(t, err)
		p.DoneAt(u, breaker.Failure)
	}
	require.LessOrEqual(t, g.Len(), most)
	require.Greater(t, g.Stats().Unguarded, int64(keys/10-2*most))
	require.Less(t, heap()-before, most*6000)
}

func heap() int {
	runtime.GC()
	runtime.GC() // what was weakly held goes in the next round
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// Scenario 46. A timer or a goroutine would keep the breaker that it is for.
func TestScenarioA46DroppedBreakersLeaveNothing(t *testing.T) {
	const n = 100_000
	goroutines, before := runtime.NumGoroutine(), heap()
	func() {
		g := breaker.NewGroup[int]("g", breaker.GroupConfig{Breaker: breaker.Config{MinCalls: 1}, MaxKeys: n})
		for i := range n {
			alone := breaker.New("b", breaker.Config{MinCalls: 1})
			_, _ = alone.Run(bg(), fail), g.Get(i).Run(bg(), fail)
		}
		require.Greater(t, heap()-before, n*1000, "the group is there")
		runtime.KeepAlive(g)
	}()
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines)
	left := heap() - before
	for i := 0; i < 100 && left >= n*10; i++ { // the collector is not done when it returns
		left = min(left, heap()-before)
	}
	require.Less(t, left, n*10)
}

// groupLines returns what a group shows, by name and all attribute values but the first.
func groupLines(s stat.Source) map[string]float64 {
	seen := map[string]float64{}
	s.Observe(func(s *stat.Series, v float64) {
		key := strings.TrimPrefix(s.Instrument.Name, "weir.breaker.") + " " + strings.Join(s.Values[1:], " ")
		if _, twice := seen[key]; twice {
			panic("twice: " + key)
		}
		seen[key] = v
	})
	return seen
}

func TestGroupShowsItsFirstKeysAndTheSumOfTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := breaker.GroupConfig{Breaker: breaker.Config{MinCalls: 2}, MaxKeys: 6, MaxSeries: 2}
		g := breaker.NewGroup[string]("g", c)
		empty := groupLines(g)
		require.Zero(t, empty["calls success _other"], "there from the start")
		require.Contains(t, empty, "calls success _other")
		for _, key := range []string{"a", "b", "c", "d"} {
			_ = g.Get(key).Run(bg(), succeed)
			_, _ = g.Get(key).Run(bg(), fail), g.Get(key).Run(bg(), fail)
		}
		_ = g.Get("e").Run(bg(), succeed)
		lines := groupLines(g)
		for key, want := range map[string]float64{
			"calls success a": 1, "calls failure a": 1, "calls refused a": 1, "state open a": 1, "state closed a": 0,
			"window.failure_ratio a": 0.5, "window.calls failure a": 1, "calls success b": 1,
			"calls success _other": 3, "calls failure _other": 2, "calls refused _other": 2, "transitions open _other": 2,
			"state open _other": 2, "state closed _other": 1, "state forced_closed _other": 0,
			"group.members ": 5, "group.evictions ": 0, "group.unguarded ": 0,
		} {
			require.Contains(t, lines, key)
			require.InDelta(t, want, lines[key], 0, key)
		}
		for key := range lines {
			require.Regexp(t, "( a| b| _other|^group.*)$", key, "no other key")
		}
		require.NotContains(t, lines, "window.calls failure _other", "no gauges")

		time.Sleep(time.Minute)
		later := groupLines(g)
		require.InDelta(t, 60, later["state.time closed _other"], 1e-9, "that of e")
		require.InDelta(t, 2*5, later["state.time open _other"], 1e-9)
		require.InDelta(t, 2*55, later["state.time half_open _other"], 1e-9)
		_, err := stat.NewSet(func(s *stat.Series) *stat.Series { return s }, g)
		require.NoError(t, err)
	})
}

func TestGroupHasABoundedNumberOfSeries(t *testing.T) {
	g := breaker.NewGroup[int]("g", breaker.GroupConfig{Breaker: breaker.Config{MinCalls: 1}, MaxKeys: 1000, MaxSeries: 10})
	var series []*stat.Series
	for round := range 3 {
		for i := range 5000 {
			_ = g.Get(i).Run(bg(), []func(ctx) error{succeed, fail}[i%2])
		}
		seen := map[*stat.Series]bool{}
		g.Observe(func(s *stat.Series, _ float64) { seen[s] = true })
		one := 0
		breaker.New("one", breaker.Config{MinCalls: 1}).Observe(func(*stat.Series, float64) { one++ })
		require.Less(t, len(seen), 12*(one+3))
		if round > 0 {
			require.Subset(t, slices.Collect(maps.Keys(seen)), series, "the same each time")
		}
		series = slices.Collect(maps.Keys(seen))
	}
}

// The members with series of their own are kept for good, and the sum of the others
// goes on through all that comes and goes.
func TestGroupCountersOnlyGrow(t *testing.T) {
	g := breaker.NewGroup[int]("g", breaker.GroupConfig{Breaker: breaker.Config{Window: time.Millisecond, Buckets: 1, MinCalls: 3, Cooldown: breaker.Off}, MaxKeys: 50, MaxSeries: 5})
	var made atomic.Int64
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 1))
			var mine []*breaker.Breaker
			for i := range 20_000 {
				b := g.Get(int(r.ExpFloat64() * 100))
				if r.IntN(10) == 0 {
					mine = append(mine[max(0, len(mine)-20):], b)
				}
				for _, b := range append(mine[len(mine)*9/10:], b) {
					if p, err := b.Allow(); err == nil {
						p.Done(breaker.Outcome(r.IntN(3)))
					}
					made.Add(1)
				}
				if i%2000 == 0 {
					runtime.GC()
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	last, rounds := map[*stat.Series]float64{}, 0
	look := func() (calls float64) {
		g.Observe(func(s *stat.Series, v float64) {
			if s.Instrument.Kind != stat.Counter {
				return
			}
			if v < last[s] && (s.Instrument != stat.BreakerStateTime || s.Values[2] == "_other") {
				t.Errorf("%s %v fell from %v to %v", s.Instrument.Name, s.Values, last[s], v)
			}
			last[s] = v
			if s.Instrument == stat.BreakerCalls || s.Instrument == stat.BreakerLateResults {
				calls += v
			}
		})
		return calls
	}
	for running := true; running; rounds++ {
		select {
		case <-done:
			running = false
		default:
			look()
		}
	}
	require.Greater(t, rounds, 10)
	require.Positive(t, g.Stats().Evictions)
	require.InDelta(t, made.Load(), look(), 0, "each call is in some sum")
	require.Len(t, slices.DeleteFunc(slices.Collect(maps.Keys(last)), func(s *stat.Series) bool {
		return s.Instrument != stat.BreakerSlowCalls
	}), 6, "five keys and the others")
}

// words is a key that counts how often it is put into words, and uses the group
// meanwhile.
type words struct{ n int }

var (
	rendered   atomic.Int64
	wordsGroup atomic.Pointer[breaker.Group[words]]
)

func (w words) String() string {
	rendered.Add(1)
	if w.n > 0 {
		wordsGroup.Load().Get(words{w.n - 1})
	}
	return fmt.Sprint("key ", w.n/2)
}

func TestGroupPutsKeysIntoWordsOnce(t *testing.T) {
	g := breaker.NewGroup[words]("g", breaker.GroupConfig{})
	wordsGroup.Store(g)
	rendered.Store(0)
	for range 3 {
		g.Get(words{3})
		groupLines(g)
	}
	require.EqualValues(t, 4, rendered.Load())
	require.Equal(t, 4, g.Len())
	lines := groupLines(g)
	require.Contains(t, lines, "calls success key 0")
	require.Contains(t, lines, "calls success key 1")
	require.InDelta(t, 2, lines["state closed _other"], 0, "those whose words are taken")
}

func TestGroupWithAwkwardKeys(t *testing.T) {
	g := breaker.NewGroup[any]("g", breaker.GroupConfig{})
	for _, key := range []any{"_other", "", "a\xff", "a\xfe", 1, "1", int8(1), nil, [2]int{1, 2}, true} {
		b := g.Get(key)
		require.Same(t, b, g.Get(key))
		_ = b.Run(bg(), succeed)
	}
	lines := groupLines(g)
	require.InDelta(t, 5, lines["calls success _other"], 0, "_other, nothing, and three whose words are taken")
	for _, key := range []string{"a\uFFFD", "1", "<nil>", "[1 2]", "true"} {
		require.InDelta(t, 1, lines["calls success "+key], 0, key)
	}
	require.Equal(t, 10, g.Len())

	for _, key := range []any{math.NaN(), [1]float64{math.NaN()}} {
		require.Equal(t, breaker.ForcedClosed, g.Get(key).State())
	}
	require.Equal(t, 10, g.Len())
	require.EqualValues(t, 2, g.Stats().Unguarded)
	require.Panics(t, func() { g.Get([]int{1}) }, "as in a map")
	require.NotNil(t, g.Get("still works"))
}

func TestGroupConfigSaysWhatIsWrong(t *testing.T) {
	for _, good := range []breaker.GroupConfig{{}, {MaxKeys: 1}, {MaxKeys: 5, MaxSeries: 5}, {MaxSeries: breaker.Off}, {MaxSeries: 10_000}} {
		require.NoError(t, good.Validate(), good)
	}
	require.EqualError(t, breaker.GroupConfig{MaxKeys: -1, MaxSeries: -2}.Validate(),
		"breaker: MaxKeys is -1, must be at least 1\nbreaker: MaxSeries is -2, must be at least 1 and at most MaxKeys, or Off")
	require.EqualError(t, breaker.GroupConfig{MaxKeys: 5, MaxSeries: 6}.Validate(),
		"breaker: MaxSeries is 6, must be at least 1 and at most MaxKeys, or Off")
	bad := breaker.GroupConfig{Breaker: breaker.Config{MinCalls: -3}}
	require.EqualError(t, bad.Validate(), "breaker: Breaker: breaker: MinCalls is -3, must be at least 1, or Off")
	require.PanicsWithError(t, bad.Validate().Error(), func() { breaker.NewGroup[int]("g", bad) })
}

func TestGroupGetAllocatesNothing(t *testing.T) {
	g := breaker.NewGroup[string]("g", breaker.GroupConfig{})
	g.Get("a")
	require.Zero(t, testing.AllocsPerRun(1000, func() { _ = g.Get("a").Run(bg(), succeed) }))
}

func ExampleGroup() {
	hosts := breaker.NewGroup[string]("hosts", breaker.GroupConfig{Breaker: breaker.Config{MinCalls: 2}})
	for range 2 {
		_ = hosts.Get("a.example").Run(context.Background(), func(context.Context) error { return errors.New("down") })
	}
	_ = hosts.Get("b.example").Run(context.Background(), func(context.Context) error { return nil })
	for _, host := range []string{"a.example", "b.example"} {
		fmt.Println(host, "is", hosts.Get(host).State())
	}
	// Output:
	// a.example is open
	// b.example is closed
}

func ExampleGroup_All() {
	shards := breaker.NewGroup[int]("shards", breaker.GroupConfig{})
	for shard := range 4 {
		shards.Get(shard)
	}
	shards.Get(3).OpenFor(time.Minute)
	for shard, b := range shards.All() {
		if b.IsOpen() {
			fmt.Println("shard", shard, "is open")
		}
	}
	// Output: shard 3 is open
}

func ExampleGroupConfig() {
	c := breaker.GroupConfig{Breaker: breaker.Config{FailureRate: 2}, MaxKeys: -5}
	fmt.Println(c.Validate())
	// Output:
	// breaker: Breaker: breaker: FailureRate is 2, must be above 0 and at most 1, or Off
	// breaker: MaxKeys is -5, must be at least 1
}

// A key for which there is no room passes, and is counted.
func ExampleGroupStats() {
	hosts := breaker.NewGroup[string]("hosts", breaker.GroupConfig{MaxKeys: 1})
	hosts.Get("a.example").OpenFor(time.Minute)
	fmt.Println(hosts.Get("b.example").State())
	fmt.Printf("%+v", hosts.Stats())
	// Output:
	// forced_closed
	// {Members:1 Evictions:0 Unguarded:1}
}

func BenchmarkGroupGet(b *testing.B) {
	keys := make([]string, 5000)
	for i := range keys {
		keys[i] = fmt.Sprint("host-", i)
	}
	full := breaker.GroupConfig{Breaker: breaker.Config{MinCalls: 1}, MaxKeys: 1000}
	for name, c := range map[string]breaker.GroupConfig{"members": {}, "most of them unguarded": full} {
		b.Run(name, func(b *testing.B) {
			g, i := breaker.NewGroup[string]("g", c), 0
			for _, key := range keys {
				_ = g.Get(key).Run(bg(), fail)
			}
			b.ReportAllocs()
			for b.Loop() {
				g.Get(keys[i])
				if i++; i == len(keys) {
					i = 0
				}
			}
		})
	}
	b.Run("new keys", func(b *testing.B) {
		g, i := breaker.NewGroupAt[int]("g", breaker.GroupConfig{}, t0), 0
		b.ReportAllocs()
		for b.Loop() {
			g.GetAt(after(time.Duration(i)*2*time.Millisecond), i)
			i++
		}
	})
	b.Run("observe 10000", func(b *testing.B) {
		g := breaker.NewGroup[int]("g", breaker.GroupConfig{})
		for i := range 10_000 {
			g.Get(i)
		}
		b.ReportAllocs()
		for b.Loop() {
			g.Observe(func(*stat.Series, float64) {})
		}
	})
	b.Run("one key, parallel", func(b *testing.B) {
		g := breaker.NewGroup[string]("g", breaker.GroupConfig{})
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				g.Get("a")
			}
		})
	})
}
