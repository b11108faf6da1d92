package breaker_test

import (
	"context"
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

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
	"github.com/weir-go/weir/window"
)

type ctx = context.Context

// after returns the time d after t0.
func after(d time.Duration) time.Time { return t0.Add(d) }

// group returns a group in which every member can be evicted.
func group(most int, c breaker.Config) *breaker.Group[string] {
	return breaker.NewGroupAt[string]("g", breaker.GroupConfig{Breaker: c, MaxKeys: most, MaxSeries: breaker.Off}, t0)
}

// call makes a call of the key that takes no time.
func call(t *testing.T, g *breaker.Group[string], u time.Time, key string, o breaker.Outcome) {
	t.Helper()
	p, err := g.GetAt(u, key).AllowAt(u)
	require.NoError(t, err)
	p.RecordAt(u, o)
}

// press adds the given number of new keys, each of which must replace another key.
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
	_ = a.Run(bg(), fail)
	require.Equal(t, breaker.Open, a.State())
	require.Equal(t, breaker.Closed, b.State())
	require.Equal(t, map[string]*breaker.Breaker{"a": a, "b": b}, maps.Collect(g.All()))
	require.Equal(t, breaker.GroupStats{Members: 2}, g.Stats())
	for range g.All() {
		break
	}
}

// Scenario 45. A small group that evicts all the time decides as a map that keeps every breaker.
func TestScenarioA45EvictionChangesNoDecision(t *testing.T) {
	c := breaker.Config{MinCalls: 4, Window: time.Second, Cooldown: 3 * time.Second, Probes: 2, SlowCall: 100 * time.Millisecond, CooldownFactor: 2}
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
		require.Equal(t, q.RecordAt(end, o), p.RecordAt(end, o))
	}
	require.Greater(t, g.Stats().Evictions, int64(200))
	require.Greater(t, refusals, 200)
}

// kept reports whether the group still has the breaker that prepare has changed, after many keys have
// competed for its room at the time u.
func kept(c breaker.Config, u time.Time, prepare func(b *breaker.Breaker)) bool {
	g := group(1, c)
	b := g.GetAt(t0, "me")
	prepare(b)
	press(g, u, 20)
	return maps.Collect(g.All())["me"] == b
}

// at makes a call at t0 that ends later.
func at(end time.Duration, o breaker.Outcome) func(*breaker.Breaker) {
	return func(b *breaker.Breaker) {
		p, _ := b.AllowAt(t0)
		p.RecordAt(after(end), o)
	}
}

// begin begins a call at t0.
func begin(b *breaker.Breaker) { _, _ = b.AllowAt(t0) }

func neverTrip(window.Counts) (string, bool) { return "", false }

// Scenario 45.
func TestScenarioA45MembersInUseAreNotEvicted(t *testing.T) {
	const span = 10 * time.Second
	for name, c := range map[string]struct {
		config  breaker.Config
		prepare func(*breaker.Breaker)
		at      time.Duration
		kept    bool
	}{
		"fresh":                        {prepare: func(*breaker.Breaker) {}},
		"failed a window ago":          {prepare: at(0, breaker.Failure), at: span},
		"failed since":                 {prepare: at(9*time.Second, breaker.Failure), at: 18 * time.Second, kept: true},
		"succeeded since":              {prepare: at(9*time.Second, breaker.Success), at: 18 * time.Second, kept: true},
		"slow since":                   {config: breaker.Config{SlowCall: time.Second, Window: 5 * time.Second}, prepare: at(4*time.Second, breaker.Success), at: 8 * time.Second, kept: true},
		"ignored since":                {prepare: at(9*time.Second, breaker.Ignored), at: 18 * time.Second},
		"open":                         {config: breaker.Config{MinCalls: 1, Cooldown: time.Hour}, prepare: at(0, breaker.Failure), at: time.Minute, kept: true},
		"half-open":                    {config: breaker.Config{MinCalls: 1}, prepare: at(0, breaker.Failure), at: time.Minute, kept: true},
		"closed again":                 {config: breaker.Config{MinCalls: 1, Probes: 1}, prepare: func(b *breaker.Breaker) { at(0, breaker.Failure)(b); b.ResetAt(after(1)) }, at: time.Minute},
		"a streak in the window":       {config: breaker.Config{ConsecutiveFailures: 5}, prepare: at(0, breaker.Failure), at: span - time.Second, kept: true},
		"a streak from before":         {config: breaker.Config{ConsecutiveFailures: 5}, prepare: at(0, breaker.Failure), at: span},
		"a streak that Trip might see": {config: breaker.Config{Trip: neverTrip}, prepare: at(0, breaker.Failure), at: span},
		"asked to wait": {prepare: func(b *breaker.Breaker) {
			p, _ := b.AllowAt(t0)
			p.SetRetryAfter(time.Minute)
			p.RecordAt(t0, breaker.Failure)
		}, at: 50 * time.Second, kept: true},
		"asked to wait until now": {prepare: func(b *breaker.Breaker) {
			p, _ := b.AllowAt(t0)
			p.SetRetryAfter(time.Minute)
			p.RecordAt(t0, breaker.Failure)
		}, at: 61 * time.Second},
		"forced open":                             {prepare: func(b *breaker.Breaker) { b.ForceAt(t0, breaker.ForcedOpen) }, at: time.Hour, kept: true},
		"disabled":                                {prepare: func(b *breaker.Breaker) { b.ForceAt(t0, breaker.Disabled) }, at: time.Hour, kept: true},
		"in shadow mode":                          {prepare: func(b *breaker.Breaker) { b.ForceAt(t0, breaker.Shadow) }, at: time.Hour, kept: true},
		"released":                                {prepare: func(b *breaker.Breaker) { b.ForceAt(t0, breaker.ForcedOpen); b.ReleaseAt(after(1)) }, at: time.Hour},
		"of a config of its own":                  {prepare: func(b *breaker.Breaker) { _ = b.Reconfigure(breaker.Config{MinCalls: 3}) }, at: time.Hour, kept: true},
		"open at first":                           {config: breaker.Config{Initial: breaker.Open}, prepare: func(*breaker.Breaker) {}, at: 4 * time.Second, kept: true},
		"open at first, and nobody came":          {config: breaker.Config{Initial: breaker.Open}, prepare: func(*breaker.Breaker) {}, at: 5 * time.Second},
		"open at first, and being probed":         {config: breaker.Config{Initial: breaker.Open}, prepare: func(b *breaker.Breaker) { _, _ = b.AllowAt(after(5 * time.Second)) }, at: time.Hour, kept: true},
		"open at first, and closed by now":        {config: breaker.Config{Initial: breaker.Open}, prepare: func(b *breaker.Breaker) { b.ResetAt(t0) }, at: time.Hour},
		"in shadow mode as all are":               {config: breaker.Config{Initial: breaker.Shadow}, prepare: at(0, breaker.Failure), at: span},
		"in shadow mode as all are, failed since": {config: breaker.Config{Initial: breaker.Shadow}, prepare: at(0, breaker.Failure), at: span - time.Second, kept: true},
		"disabled as all are":                     {config: breaker.Config{Initial: breaker.Disabled}, prepare: at(0, breaker.Failure)},
		"released, as others are not":             {config: breaker.Config{Initial: breaker.ForcedClosed}, prepare: func(b *breaker.Breaker) { b.ReleaseAt(t0) }, at: time.Hour, kept: true},
		"the last calls good":                     {config: breaker.Config{LastCalls: 5}, prepare: at(0, breaker.Success), at: time.Hour},
		"the last calls bad":                      {config: breaker.Config{LastCalls: 5}, prepare: at(0, breaker.Failure), at: time.Hour, kept: true},
		"the last calls slow":                     {config: breaker.Config{LastCalls: 5, SlowCall: time.Second}, prepare: at(2*time.Second, breaker.Success), at: time.Hour, kept: true},
		"a call in flight":                        {prepare: begin, at: time.Hour},
		"a call in flight that is shown":          {config: breaker.Config{Active: true}, prepare: begin, at: time.Hour, kept: true},
		"a call in flight that may hang":          {config: breaker.Config{HungCalls: true, SlowCall: time.Second}, prepare: begin, at: 11 * time.Second, kept: true},
		"a call in flight that hung":              {config: breaker.Config{HungCalls: true, SlowCall: time.Second}, prepare: begin, at: time.Minute},
		"a caller that waits":                     {prepare: func(b *breaker.Breaker) { b.AfterOpen(func() {}) }, at: time.Hour, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.kept, kept(c.config, after(c.at), c.prepare))
		})
	}
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
	require.NotSame(t, c, g.GetAt(after(time.Minute), "c"), "now there is room")
	require.Equal(t, breaker.GroupStats{Members: 2, Unguarded: 102, Evictions: 1}, g.Stats())
}

// A million keys, of which the last ten thousand or so have been in use lately.
func TestGroupIsBoundedWithAMillionKeys(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the garbage collector has no processor of its own
	const most = 10_000
	keys := manyKeys
	if testing.Short() {
		keys = 100_000
	}
	g := breaker.NewGroupAt[int]("g", breaker.GroupConfig{}, t0)
	before := heap()
	for i := range keys {
		u := after(time.Duration(i) * 2 * time.Millisecond)
		p, err := g.GetAt(u, i).AllowAt(u)
		require.NoError(t, err)
		p.RecordAt(u, breaker.Success)
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
	require.Less(t, grown, most*3000)

	total := 0.0
	for line, v := range g.Observe {
		if line.Instrument == instrument.BreakerCalls {
			total += v
		}
	}
	require.InDelta(t, keys, total, 0, "no call is lost to the sums")

	// All of them fail now, so none can be evicted, and new keys are unguarded.
	for i := range keys / 10 {
		u := after(time.Hour + time.Duration(i)*10*time.Microsecond)
		p, err := g.GetAt(u, -i-1).AllowAt(u)
		require.NoError(t, err)
		p.RecordAt(u, breaker.Failure)
	}
	require.LessOrEqual(t, g.Len(), most)
	require.Greater(t, g.Stats().Unguarded, int64(keys/10-2*most))
	require.Less(t, heap()-before, most*3000)
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// Scenario 46. A timer or a goroutine would keep its breaker from being collected.
func TestScenarioA46DroppedBreakersAreCollected(t *testing.T) {
	n := testenv.Repeat(100_000, 20_000)
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

// groupLines returns the metrics of a group by name and all attribute values except the first.
func groupLines(s stat.Source) map[string]float64 {
	seen := map[string]float64{}
	for s, v := range s.Observe {
		key := strings.TrimPrefix(s.Instrument.Name, "weir.breaker.") + " " + strings.Join(s.Values[1:], " ")
		if _, twice := seen[key]; twice {
			panic("twice: " + key)
		}
		seen[key] = v
	}
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
		_, err := read.New(func(s *stat.Series) *stat.Series { return s }, g)
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
		for s := range g.Observe {
			seen[s] = true
		}
		one := 0
		for range breaker.New("one", breaker.Config{MinCalls: 1}).Observe {
			one++
		}
		require.Less(t, len(seen), 12*(one+3))
		if round > 0 {
			require.Subset(t, slices.Collect(maps.Keys(seen)), series, "the same each time")
		}
		series = slices.Collect(maps.Keys(seen))
	}
}

// The series of a key and the sums of the others never fall while keys come and go.
func TestGroupCountersOnlyGrow(t *testing.T) {
	g := breaker.NewGroup[int]("g", breaker.GroupConfig{Breaker: breaker.Config{Window: time.Millisecond, Buckets: 1, MinCalls: 3, Cooldown: breaker.Off}, MaxKeys: 50, MaxSeries: 5})
	var made atomic.Int64
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 1))
			var mine []*breaker.Breaker
			for range testenv.Repeat(20_000, 4_000) {
				b := g.Get(int(r.ExpFloat64() * 100))
				if r.IntN(10) == 0 {
					mine = append(mine[max(0, len(mine)-20):], b)
				}
				for _, b := range append(mine[len(mine)*9/10:], b) {
					if p, err := b.Allow(); err == nil {
						p.Record(breaker.Outcome(r.IntN(3)))
					}
					made.Add(1)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	last, rounds := map[*stat.Series]float64{}, 0
	look := func() (calls float64) {
		for s, v := range g.Observe {
			if s.Instrument.Kind != stat.Counter {
				continue
			}
			if v < last[s] && (s.Instrument != instrument.BreakerStateTime || s.Values[2] == "_other") {
				t.Errorf("%s %v fell from %v to %v", s.Instrument.Name, s.Values, last[s], v)
			}
			last[s] = v
			if s.Instrument == instrument.BreakerCalls || s.Instrument == instrument.BreakerLateResults {
				calls += v
			}
		}
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
		return s.Instrument != instrument.BreakerSlowCalls
	}), 6, "five keys and the others")
}

// words is a key that counts the calls of its String method, which uses the group.
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

func TestGroupMakesTheTextOfAKeyOnce(t *testing.T) {
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
	for _, good := range []breaker.GroupConfig{{}, {MaxKeys: 1}, {MaxKeys: 5, MaxSeries: 2}, {MaxSeries: breaker.Off}, {MaxSeries: 5_000}} {
		require.NoError(t, good.Validate(), good)
	}
	require.EqualError(t, breaker.GroupConfig{MaxKeys: -1, MaxSeries: -2}.Validate(),
		"breaker: MaxKeys is -1, must be at least 1\nbreaker: MaxSeries is -2, must be at least 1 and at most half of MaxKeys, or Off")
	require.EqualError(t, breaker.GroupConfig{MaxKeys: 5, MaxSeries: 3}.Validate(),
		"breaker: MaxSeries is 3, must be at least 1 and at most half of MaxKeys, or Off")
	bad := breaker.GroupConfig{Breaker: breaker.Config{MinCalls: -3}}
	require.EqualError(t, bad.Validate(), "breaker: Breaker: breaker: MinCalls is -3, must be at least 1")
	require.PanicsWithError(t, bad.Validate().Error(), func() { breaker.NewGroup[int]("g", bad) })
}

func TestGroupGetAllocatesNothing(t *testing.T) {
	g := breaker.NewGroup[string]("g", breaker.GroupConfig{})
	g.Get("a")
	require.Zero(t, testing.AllocsPerRun(1000, func() { _ = g.Get("a").Run(bg(), succeed) }))
}

func ExampleGroup_All() {
	shards := breaker.NewGroup[int]("shards", breaker.GroupConfig{})
	for shard := range 4 {
		shards.Get(shard)
	}
	shards.Get(3).OpenFor(time.Minute)
	for shard, b := range shards.All() {
		if b.Tripped() {
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

// A key without room is unguarded and counted.
func ExampleGroup_Observe() {
	hosts := breaker.NewGroup[string]("hosts", breaker.GroupConfig{MaxKeys: 1})
	hosts.Get("a.example").OpenFor(time.Minute)
	fmt.Println(hosts.Get("b.example").State())
	for series, value := range hosts.Observe {
		if strings.HasPrefix(series.Instrument.Name, "weir.breaker.group.") {
			fmt.Println(series.Instrument.Name, value)
		}
	}
	// Output:
	// forced_closed
	// weir.breaker.group.members 1
	// weir.breaker.group.evictions 0
	// weir.breaker.group.unguarded 1
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
			for range g.Observe {
			}
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
