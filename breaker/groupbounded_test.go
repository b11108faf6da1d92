package breaker_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/window"
)

// Scenario A45. A small group that evicts all the time makes the same decisions as a map that keeps
// every breaker.
func TestEvictionChangesNoDecision(t *testing.T) {
	c := breaker.Config{MinCalls: 4, Window: time.Second, Cooldown: 3 * time.Second, Probes: 2, SlowCall: 100 * time.Millisecond, CooldownFactor: 2, FailureRun: breaker.Off}
	g, r := newEvictableGroup(20, c), rand.New(rand.NewPCG(4, 5))
	all := map[string]*breaker.Breaker{}
	at, refusals := time.Duration(0), 0
	steps := testenv.Repeat(30_000, 5_000)
	for step := range steps {
		at += time.Duration(r.ExpFloat64() * float64(60*time.Millisecond))
		key := fmt.Sprint(int(r.ExpFloat64() * 30))
		// so that the buckets of all breakers begin at the same times
		u := after(at.Truncate(c.Window / 10))
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
	require.Greater(t, g.Stats().Evictions, int64(steps/150))
	require.Greater(t, refusals, steps/150)
}

// isKept changes a breaker of a group by prepare, adds many other keys at the time u, and reports
// whether the group still has the breaker.
func isKept(c breaker.Config, u time.Time, prepare func(b *breaker.Breaker)) bool {
	g := newEvictableGroup(1, c)
	b := g.GetAt(t0, "me")
	prepare(b)
	addKeys(g, u, 20)
	return maps.Collect(g.All())["me"] == b
}

// callFor makes a call at t0 that ends later.
func callFor(end time.Duration, o breaker.Outcome) func(*breaker.Breaker) {
	return func(b *breaker.Breaker) {
		p, _ := b.AllowAt(t0)
		p.RecordAt(after(end), o)
	}
}

// beginCall begins a call at t0.
func beginCall(b *breaker.Breaker) { _, _ = b.AllowAt(t0) }

func neverTrip(window.Counts) (string, bool) { return "", false }

// evictionWindow is the default window of a breaker.
const evictionWindow = 10 * time.Second

// evictionCases say which members are kept at a time. All others are evicted then.
var evictionCases = map[string]struct {
	config  breaker.Config
	prepare func(*breaker.Breaker)
	at      time.Duration
	kept    bool
}{
	"fresh":                        {prepare: func(*breaker.Breaker) {}},
	"failed a window ago":          {prepare: callFor(0, breaker.Failure), at: evictionWindow},
	"failed since":                 {prepare: callFor(9*time.Second, breaker.Failure), at: 18 * time.Second, kept: true},
	"succeeded since":              {prepare: callFor(9*time.Second, breaker.Success), at: 18 * time.Second, kept: true},
	"slow since":                   {config: breaker.Config{SlowCall: time.Second, Window: 5 * time.Second}, prepare: callFor(4*time.Second, breaker.Success), at: 8 * time.Second, kept: true},
	"ignored since":                {prepare: callFor(9*time.Second, breaker.Ignored), at: 18 * time.Second},
	"open":                         {config: breaker.Config{MinCalls: 1, Cooldown: time.Hour}, prepare: callFor(0, breaker.Failure), at: time.Minute, kept: true},
	"half-open":                    {config: breaker.Config{MinCalls: 1}, prepare: callFor(0, breaker.Failure), at: time.Minute, kept: true},
	"closed again":                 {config: breaker.Config{MinCalls: 1, Probes: 1}, prepare: func(b *breaker.Breaker) { callFor(0, breaker.Failure)(b); b.ResetAt(after(1)) }, at: time.Minute},
	"a streak in the window":       {config: breaker.Config{ConsecutiveFailures: 5}, prepare: callFor(0, breaker.Failure), at: evictionWindow - time.Second, kept: true},
	"a streak from before":         {config: breaker.Config{ConsecutiveFailures: 5}, prepare: callFor(0, breaker.Failure), at: evictionWindow},
	"a streak that Trip might see": {config: breaker.Config{Trip: neverTrip}, prepare: callFor(0, breaker.Failure), at: evictionWindow},
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
	"forced open":               {prepare: func(b *breaker.Breaker) { b.ForceAt(t0, breaker.ForcedOpen, "") }, at: time.Hour, kept: true},
	"disabled":                  {prepare: func(b *breaker.Breaker) { b.ForceAt(t0, breaker.Disabled, "") }, at: time.Hour, kept: true},
	"in shadow mode":            {prepare: func(b *breaker.Breaker) { b.ForceAt(t0, breaker.Shadow, "") }, at: time.Hour, kept: true},
	"released":                  {prepare: func(b *breaker.Breaker) { b.ForceAt(t0, breaker.ForcedOpen, ""); b.ReleaseAt(after(1)) }, at: time.Hour},
	"of a config of its own":    {prepare: func(b *breaker.Breaker) { _ = b.Reconfigure(breaker.Config{MinCalls: 3}) }, at: time.Hour, kept: true},
	"in shadow mode as all are": {config: breaker.Config{Force: breaker.Shadow}, prepare: callFor(0, breaker.Failure), at: evictionWindow},
	"in shadow mode as all are, failed since": {config: breaker.Config{Force: breaker.Shadow}, prepare: callFor(0, breaker.Failure), at: evictionWindow - time.Second, kept: true},
	"disabled as all are":                     {config: breaker.Config{Force: breaker.Disabled}, prepare: callFor(0, breaker.Failure)},
	"released, and forced as all are":         {config: breaker.Config{Force: breaker.ForcedClosed}, prepare: func(b *breaker.Breaker) { b.ForceAt(t0, breaker.Shadow, ""); b.ReleaseAt(t0) }, at: time.Hour},
	"the last calls good":                     {config: breaker.Config{LastCalls: 5}, prepare: callFor(0, breaker.Success), at: time.Hour},
	"the last calls bad":                      {config: breaker.Config{LastCalls: 5}, prepare: callFor(0, breaker.Failure), at: time.Hour, kept: true},
	"the last calls slow":                     {config: breaker.Config{LastCalls: 5, SlowCall: time.Second}, prepare: callFor(2*time.Second, breaker.Success), at: time.Hour, kept: true},
	"a call in flight":                        {prepare: beginCall, at: time.Hour - 1, kept: true},
	"a caller that waits":                     {prepare: func(b *breaker.Breaker) { b.AfterOpen(func() {}) }, at: time.Hour, kept: true},
}

// Scenario A45.
func TestMembersInUseAreNotEvicted(t *testing.T) {
	for name, c := range evictionCases {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.kept, isKept(c.config, after(c.at), c.prepare))
		})
	}
}

func TestGroupPassesNewKeysUnguardedWhenNoMemberCanGo(t *testing.T) {
	g := newEvictableGroup(2, breaker.Config{MinCalls: 1, Cooldown: 50 * time.Second})
	makeKeyCall(t, g, t0, "a", breaker.Failure)
	makeKeyCall(t, g, t0, "b", breaker.Failure)
	c := g.GetAt(after(time.Second), "c")
	require.Equal(t, breaker.ForcedClosed, c.StateAt(after(time.Second)))
	require.Same(t, c, g.GetAt(after(time.Second), "d"), "one for all")
	for range 100 {
		makeKeyCall(t, g, after(time.Second), "c", breaker.Failure)
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

// Many keys have one call each. At most half of as many keys as there is room for have a call in
// their windows. With WEIR_SOAK=true there are a million keys.
func TestGroupIsBoundedHoweverManyKeysThereAre(t *testing.T) {
	// the garbage collector has no processor of its own
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	most, keys := testenv.Repeat(10_000, 2_500), testenv.Repeat(1_000_000, 8_000)
	failing, apart := most+most/5, 20*time.Second/time.Duration(most)
	g := breaker.NewGroupAt[int]("g", breaker.GroupConfig{MaxKeys: most, MaxSeries: breaker.Off}, t0)
	before := heapInUse()
	for i := range keys {
		u := after(time.Duration(i) * apart)
		p, err := g.GetAt(u, i).AllowAt(u)
		require.NoError(t, err)
		p.RecordAt(u, breaker.Success)
		if i%1000 == 0 {
			require.LessOrEqual(t, g.Len(), most)
		}
	}
	grown := heapInUse() - before
	s := g.Stats()
	t.Logf("%d members in %d KB, %d bytes each; %d evictions, %d unguarded", s.Members, grown>>10, grown/s.Members, s.Evictions, s.Unguarded)
	require.InDelta(t, most, s.Members, float64(most/20))
	require.Greater(t, s.Evictions, int64(keys-2*most))
	require.Less(t, s.Unguarded, int64(keys/1000))
	require.Less(t, grown, most*2300)

	total := 0.0
	for line, v := range g.Observe {
		if line.Instrument == instrument.BreakerCalls {
			total += v
		}
	}
	require.InDelta(t, keys, total, 0, "no call is lost to the sums")

	// All of them fail now, so none can be evicted, and new keys are unguarded.
	for i := range failing {
		u := after(time.Hour + time.Duration(i)*10*time.Microsecond)
		p, err := g.GetAt(u, -i-1).AllowAt(u)
		require.NoError(t, err)
		p.RecordAt(u, breaker.Failure)
	}
	require.LessOrEqual(t, g.Len(), most)
	require.GreaterOrEqual(t, g.Stats().Unguarded, int64(failing-most))
	require.Less(t, heapInUse()-before, most*2300)
}

func heapInUse() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// Scenario A46. A timer or a goroutine would keep its breaker from being collected.
func TestDroppedBreakersAreCollected(t *testing.T) {
	n := testenv.Repeat(100_000, 3_000)
	goroutines, before := runtime.NumGoroutine(), heapInUse()
	func() {
		g := breaker.NewGroup[int]("g", breaker.GroupConfig{Breaker: breaker.Config{MinCalls: 1}, MaxKeys: n})
		for i := range n {
			alone := breaker.New("b", breaker.Config{MinCalls: 1})
			_, _ = alone.Run(bg(), fail), g.Get(i).Run(bg(), fail)
		}
		require.Greater(t, heapInUse()-before, n*1000, "the group is there")
		runtime.KeepAlive(g)
	}()
	require.LessOrEqual(t, runtime.NumGoroutine(), goroutines)
	left := heapInUse() - before
	for i := 0; i < 100 && left >= n*10; i++ { // the collector is not done when it returns
		left = min(left, heapInUse()-before)
	}
	require.Less(t, left, n*10)
}
