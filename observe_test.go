package weir_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/quota"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/weirhttp"
	"github.com/weir-go/weir/window"
)

// readMetrics returns the values and the series of a source by the names of their instruments.
func readMetrics(s stat.Source) (values map[string]float64, series map[string]*stat.Series) {
	values, series = map[string]float64{}, map[string]*stat.Series{}
	for line, v := range s.Observe {
		values[line.Instrument.Name], series[line.Instrument.Name] = v, line
	}
	return values, series
}

func TestObserveYieldsTheLimit(t *testing.T) {
	values, _ := readMetrics(weir.New("g", weir.Config{Rate: limiter.PerSecond(2), Burst: 10}))
	require.InDelta(t, 10, values["weir.limiter.limit"], 0)
	require.InDelta(t, 5, values["weir.limiter.period"], 0)

	unlimited := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Unlimited()})
	values, _ = readMetrics(weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Limiter: unlimited}))
	require.Contains(t, values, "weir.limiter.requests")
	for _, name := range []string{"available", "limit", "period"} {
		require.NotContains(t, values, "weir.limiter."+name)
	}

	bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(2), Burst: 10})
	timeless := limiter.NewJoint("", bucket, unlimited)
	values, _ = readMetrics(weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Limiter: timeless}))
	require.InDelta(t, 10, values["weir.limiter.limit"], 0)
	require.NotContains(t, values, "weir.limiter.period")
}

func TestLimiterCountersHaveACreationTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		g := hosts(weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(1)}})
		time.Sleep(time.Hour)
		_, series := readMetrics(g)
		for _, name := range []string{"requests", "tokens", "evictions"} {
			require.Equal(t, began, series["weir.limiter."+name].Created, name)
		}
	})
}

func TestHistogramsYieldDurationsOfCalls(t *testing.T) {
	g := weir.New("g", weir.Config{Breaker: breaker.Config{Latency: true}})
	require.NoError(t, g.Run(t.Context(), succeed))
	var calls int64
	for _, h := range g.Histograms {
		calls += h.Count()
	}
	require.EqualValues(t, 1, calls)
}

// outcomeCounts counts calls by how they ended for the caller.
type outcomeCounts struct{ succeeded, failed, panicked, open, limited atomic.Int64 }

// call makes the i-th call, which succeeds, fails or panics.
func (c *outcomeCounts) call(g *weir.Gate, i int) {
	defer func() {
		if recover() != nil {
			c.panicked.Add(1)
		}
	}()
	err := g.Run(bg(), func(context.Context) error {
		switch {
		case i%101 == 0:
			panic("boom")
		case i%3 == 0:
			return errDown
		}
		return nil
	})
	switch {
	case err == nil:
		c.succeeded.Add(1)
	case errors.Is(err, breaker.ErrOpen):
		c.open.Add(1)
	case errors.Is(err, limiter.ErrLimited):
		c.limited.Add(1)
	default:
		c.failed.Add(1)
	}
}

// Many goroutines make calls that succeed, fail and panic. Each call is counted exactly once.
func TestEveryCallHasOneOutcome(t *testing.T) {
	const callers, calls = 8, 5000
	g := weir.New("g", weir.Config{
		Rate: limiter.PerSecond(1e6), Burst: 1000,
		Breaker: breaker.Config{MinCalls: 5, Window: time.Millisecond, Cooldown: 100 * time.Microsecond},
	})
	var c outcomeCounts
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := range calls {
				c.call(g, i)
			}
		})
	}
	wg.Wait()
	made := c.succeeded.Load() + c.failed.Load() + c.panicked.Load()
	require.Equal(t, int64(callers*calls), made+c.open.Load()+c.limited.Load())
	total := g.Totals()
	recorded := total.Calls() + metricOf(g.Breaker(), "weir.breaker.late_results")
	require.Equal(t, made, recorded)
	require.Equal(t, c.open.Load(), total.Refused)
	require.Equal(t, c.limited.Load(), g.Stats().Refused)
	require.Equal(t, recorded, g.Stats().Allowed)
}

func TestObserveYieldsBreakerAndLimiterMetrics(t *testing.T) {
	g := weir.New("g", weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 2})
	for range 3 {
		_ = g.Run(bg(), succeed)
	}
	seen := map[string]float64{}
	for s, v := range g.Observe {
		seen[s.Instrument.Name+" "+strings.Join(s.Values, " ")] = v
	}
	for name, want := range map[string]float64{
		"weir.breaker.calls g success ":     2,
		"weir.limiter.requests g allowed":   2,
		"weir.limiter.requests g refused":   1,
		"weir.limiter.requests g waited":    0,
		"weir.limiter.requests g cancelled": 0,
		"weir.limiter.tokens g allowed":     2,
		"weir.limiter.tokens g refused":     1,
		"weir.limiter.available g":          0,
		"weir.limiter.limit g":              2,
		"weir.limiter.waiting g":            0,
	} {
		got, there := seen[name]
		require.True(t, there, name)
		require.Equal(t, want, got, name)
	}
}

func TestObserveYieldsWaitingCallsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{Rate: limiter.PerSecond(1), Burst: 1, MaxWait: 3 * time.Second})
		ctx, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 3 { // at once, after a second, after two
			wg.Go(func() { _ = g.Run(t.Context(), succeed) })
			synctest.Wait()
		}
		wg.Go(func() { _ = g.Run(ctx, succeed) })
		synctest.Wait()
		require.Equal(t, limiter.Stats{Allowed: 1, Waiting: 3}, g.Stats())
		leave()
		wg.Wait()
		require.Equal(t, limiter.Stats{Allowed: 1, Waited: 2, Cancelled: 1}, g.Stats())
		shown := 0
		for s, h := range g.Histograms {
			shown++
			require.Equal(t, instrument.LimiterWaitDuration, s.Instrument)
			require.EqualValues(t, 2, h.Count())
			require.InDelta(t, 3, h.Sum, 1e-6)
		}
		require.Equal(t, 1, shown)
	})
	for range weir.New("g", weir.Config{Rate: limiter.PerSecond(1)}).Histograms {
		t.Fatal("no call waits")
	}
}

// metricOf returns the value of the metric of b with that name.
func metricOf(b *breaker.Breaker, name string) (n int64) {
	for s, v := range b.Observe {
		if s.Instrument.Name == name {
			n = int64(v)
		}
	}
	return n
}

func TestGroupIsASource(t *testing.T) {
	g := hosts(weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(2), Burst: 10, Breaker: breaker.Config{Latency: true}}})
	require.NoError(t, g.Get("a").Run(t.Context(), succeed))
	seen := map[string]float64{}
	for s, v := range g.Observe {
		seen[s.Instrument.Name+" "+strings.Join(s.Values, ",")] = v
	}
	for key, want := range map[string]float64{
		"weir.breaker.calls hosts,success,a": 1, "weir.limiter.requests hosts,allowed": 1, "weir.limiter.tokens hosts,allowed": 1,
		"weir.limiter.limit hosts": 10, "weir.limiter.period hosts": 5, "weir.limiter.group.size hosts": 1, "weir.limiter.evictions hosts": 0,
	} {
		require.Contains(t, seen, key)
		require.InDelta(t, want, seen[key], 0, key)
	}
	require.NotContains(t, seen, "weir.limiter.available hosts")
	calls := int64(0)
	for _, h := range g.Histograms {
		calls += h.Count()
	}
	require.EqualValues(t, 1, calls)
}

func TestGroupHistogramHasWaitsOfAllKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := hosts(weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(1), Burst: 1, MaxWait: time.Minute}})
		for _, key := range []string{"a", "a", "b", "b"} {
			// the second call of each key waits a second
			require.NoError(t, g.Get(key).Run(t.Context(), succeed))
		}
		shown := 0
		for s, h := range g.Histograms {
			shown++
			require.Equal(t, instrument.LimiterWaitDuration, s.Instrument)
			require.EqualValues(t, 2, h.Count())
			require.InDelta(t, 2, h.Sum, 1e-6)
		}
		require.Equal(t, 1, shown)
	})
}

// countedLimiters has the kinds of limiters with statistics. Each has one token a minute.
var countedLimiters = map[string]func() (limiter.Limiter, func() limiter.Stats){
	"TokenBucket": func() (limiter.Limiter, func() limiter.Stats) {
		l := limiter.NewTokenBucket(limiter.TokenBucketConfig{Name: "l", Rate: limiter.PerMinute(1), Burst: 1})
		return l, l.Stats
	},
	"LeakyBucket": func() (limiter.Limiter, func() limiter.Stats) {
		l := limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Name: "l", Rate: limiter.PerMinute(1), Capacity: 2})
		return l, l.Stats
	},
	"FixedWindow": func() (limiter.Limiter, func() limiter.Stats) {
		l := limiter.NewFixedWindow(limiter.WindowConfig{Name: "l", Limit: 1, Window: time.Minute})
		return l, l.Stats
	},
	"SlidingWindow": func() (limiter.Limiter, func() limiter.Stats) {
		l := limiter.NewSlidingWindow(limiter.WindowConfig{Name: "l", Limit: 1, Window: time.Minute})
		return l, l.Stats
	},
	"SlidingLog": func() (limiter.Limiter, func() limiter.Stats) {
		l := limiter.NewSlidingLog(limiter.WindowConfig{Name: "l", Limit: 1, Window: time.Minute})
		return l, l.Stats
	},
	"a key": func() (limiter.Limiter, func() limiter.Stats) {
		l := limiter.NewGroup(limiter.GroupConfig[string]{Name: "l", Rate: limiter.PerMinute(1), Burst: 1})
		return l.Get("a"), l.Stats
	},
	"Named": func() (limiter.Limiter, func() limiter.Stats) {
		inner := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerMinute(1), Burst: 1})
		l := limiter.NewJoint("l", inner)
		return l, l.Stats
	},
	"Joint": func() (limiter.Limiter, func() limiter.Stats) {
		l := limiter.NewTokenBucket(limiter.TokenBucketConfig{Name: "l", Rate: limiter.PerMinute(1), Burst: 1})
		return limiter.NewJoint("", l), l.Stats
	},
}

// A limiter counts a call of a gate as one request, even if the call waits.
func TestLimiterCountsAWaitingCallOnce(t *testing.T) {
	for kind, made := range countedLimiters {
		for also, tokens := range map[string]int{"alone": 0, "with a remote": 1000} {
			t.Run(kind+" "+also, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l, stats := made()
					var remote limiter.Remote
					if tokens > 0 {
						remote = newRemote(tokens)
					}
					g := weir.Join("g", weir.Parts{
						Breaker: breaker.New("b", breaker.Config{}), Limiter: l, Remote: remote, MaxWait: 2 * time.Minute,
					})
					require.NoError(t, g.Run(bg(), succeed))
					require.NoError(t, g.Run(bg(), succeed))
					const one = int64(1)
					got := stats()
					require.Zero(t, got.Refused)
					require.Equal(t, int64(2), got.Allowed+got.Waited)

					ctx, cancel := context.WithTimeout(bg(), time.Nanosecond)
					defer cancel()
					require.ErrorIs(t, g.Run(ctx, succeed), weir.ErrRefused)
					require.Equal(t, one, stats().Refused)
				})
			})
		}
	}
}

// A call keeps its token of the limiter while it waits for the remote.
func TestLimiterCountsACallWaitingForARemoteOnce(t *testing.T) {
	for kind, made := range countedLimiters {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, stats := made()
				remote := newRemote(1)
				g := weir.Join("g", weir.Parts{
					Breaker: breaker.New("b", breaker.Config{}), Limiter: l, Remote: remote, MaxWait: 10 * time.Minute,
				})
				remote.bucket.Take(1)
				require.NoError(t, g.Run(bg(), succeed))
				got := stats()
				require.Equal(t, int64(1), got.Allowed)
				require.Zero(t, got.Waited)
				require.Zero(t, got.Refused)
				require.Equal(t, limiter.Stats{Waited: 1}, g.Stats())
			})
		})
	}
}

// As the documentation of CountRefused says, waiting requests do not count.
func TestCountRefusedDoesNotCountWaitingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.Join("g", weir.Parts{
			Breaker: breaker.New("b", breaker.Config{}), MaxWait: time.Minute,
			Limiter: limiter.NewSlidingLog(limiter.WindowConfig{Limit: 2, Window: 10 * time.Second, CountRefused: true}),
		})
		began := time.Now()
		require.NoError(t, g.Run(bg(), succeed))
		time.Sleep(5 * time.Second)
		require.NoError(t, g.Run(bg(), succeed))
		time.Sleep(time.Second)
		require.NoError(t, g.Run(bg(), succeed))
		require.Equal(t, 10*time.Second, time.Since(began), "the first token is free again after 10s")
	})
}

// cancellingRemote is a remote whose caller cancels right after the decision.
type cancellingRemote struct {
	*remote
	giveUp context.CancelFunc
}

func (r cancellingRemote) Reserve(ctx context.Context, n int) (limiter.Result, func(context.Context, int) error, error) {
	defer r.giveUp()
	return r.remote.Reserve(ctx, n)
}

func TestRemoteIsRefundedEvenIfTheCallerCancelled(t *testing.T) {
	b := breaker.New("b", breaker.Config{})
	ctx, cancel := context.WithCancel(bg())
	r := newRemote(3)
	r.during = func() { b.Force(breaker.ForcedOpen, "") }
	g := weir.Join("g", weir.Parts{Breaker: b, Remote: cancellingRemote{r, cancel}})
	require.ErrorIs(t, g.Run(ctx, succeed), breaker.ErrOpen)
	require.Equal(t, 3, r.bucket.Take(0).Remaining)
}

func TestBusiestCountsTheRefusalsOfAllLimitsOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.NewGroup[string]("hosts", weir.GroupConfig{ShowKeys: true, Gate: weir.Config{
			Rate: limiter.Per(1, time.Hour), Burst: 2, MaxConcurrent: 1, Breaker: breaker.Config{MinCalls: 1},
		}})
		refused := func(key string, by error) {
			_, err := g.Get(key).Allow(t.Context())
			require.ErrorIs(t, err, by)
		}
		permit, err := g.Get("a").Allow(t.Context())
		require.NoError(t, err)
		refused("a", weir.ErrRefused) // no slot
		permit.Done(t.Context(), nil)
		require.NoError(t, g.Get("a").Run(t.Context(), func(context.Context) error { return nil }))
		refused("a", limiter.ErrLimited) // no token
		g.Get("b").Hold(time.Minute)
		refused("b", limiter.ErrLimited)
		require.Error(t, g.Get("c").Run(t.Context(), func(context.Context) error { return errors.New("down") }))
		refused("c", breaker.ErrOpen) // is not counted

		require.Equal(t, []limiter.BusyKey{
			{Limiter: "hosts", Key: "a", AtLeast: 2, AtMost: 2}, {Limiter: "hosts", Key: "b", AtLeast: 1, AtMost: 1},
		}, g.Busiest(9))
		require.Len(t, g.Busiest(1), 1)
		require.Equal(t, int64(3), g.Stats().Refused)
	})
}

func TestBusiestCountsWaitsThatAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.NewGroup[int]("tenants", weir.GroupConfig{Gate: weir.Config{Rate: limiter.Per(1, time.Hour), MaxWait: time.Second}})
		for range 3 {
			_ = g.Get(7).Run(t.Context(), func(context.Context) error { return nil })
		}
		keys := g.Busiest(9)
		require.Len(t, keys, 1)
		require.Regexp(t, "^#[0-9a-f]{12}$", keys[0].Key)
		require.Equal(t, int64(2), keys[0].AtLeast)
	})
}

// sources returns at least one source of each type of the core that is a stat.Source, by
// "package.Type". Each yields all series of its type.
func sources(t *testing.T) map[string][]stat.Source {
	t.Helper()
	timed := breaker.Config{Latency: true, MinCalls: 1, SlowCall: time.Hour}
	open := breaker.New("open", timed)
	open.OpenFor(time.Hour)
	rate := weir.Config{Rate: limiter.Per(1, time.Hour), MaxWait: time.Nanosecond, RetryShare: 0.1, Breaker: timed}
	bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour)})
	latent := window.NewCalls(window.CallsConfig{Name: "w", Latency: true})
	latent.Record(window.Success, time.Second)
	last := window.NewCalls(window.CallsConfig{Name: "w", Last: 10})
	last.Record(window.Success, time.Second)
	keys := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.Per(1, time.Hour), Name: "n"})
	daily := quota.New(quota.Config{Name: "n", Limit: 1, Every: quota.Day})
	daily.Get("").Take(1)
	byIP := weirhttp.Policy{Name: "p", Limit: 1, Window: time.Hour, By: weirhttp.ByIP}
	group, keyed := breaker.NewGroup[string]("g", breaker.GroupConfig{Breaker: timed}), hosts(weir.GroupConfig{Gate: rate})
	_, _ = group.Get("a"), keyed.Get("a")
	monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{silentNotifier{}}},
		alert.Rule{Name: "r", Value: alert.Gauge(func() float64 { return 1 }), When: alert.Above(0)})
	monitor.Evaluate(time.Now())

	return map[string][]stat.Source{
		"weir.Gate":           {weir.New("g", rate), weir.New("g", weir.Config{}), weir.Join("open", weir.Parts{Breaker: open})},
		"weir.RetryBudget":    {weir.NewRetryBudget("b", weir.RetryBudgetConfig{})},
		"weir.Group":          {keyed, hosts(weir.GroupConfig{})},
		"breaker.Breaker":     {breaker.New("b", timed), open},
		"breaker.Group":       {group},
		"throttle.Throttle":   {throttle.New("t", throttle.Config{})},
		"limiter.TokenBucket": {limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Name: "n"})},
		"limiter.Window":      {limiter.NewFixedWindow(limiter.WindowConfig{Limit: 1, Window: time.Hour, Name: "n"})},
		"limiter.LeakyBucket": {limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.Per(1, time.Hour), Name: "n"})},
		"limiter.Joint":       {limiter.NewJoint("n", bucket)},
		"inflight.Limiter":    {inflight.New(inflight.Config{Limit: 1, Name: "n"})},
		"limiter.Group":       {keys},
		"limiter.Requests":    {limiter.NewRequests("n", false)},
		"window.Calls":        {latent, last},
		"alert.Monitor":       {monitor},
		"quota.Group":         {daily},
		"weirhttp.Limit":      {weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{byIP}})},
	}
}

// silentNotifier is a notifier that does nothing.
type silentNotifier struct{}

func (silentNotifier) Name() string                              { return "silent" }
func (silentNotifier) Notify(context.Context, alert.Alert) error { return nil }

func TestSourcesListsEverySource(t *testing.T) {
	types, embed := map[string]bool{}, map[string][]string{}
	require.NoError(t, fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if d.IsDir() && name != "." && fileExists(path.Join(name, "go.mod")) {
			return fs.SkipDir
		}
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			maps.Copy(types, observers(t, name, embed))
		}
		return err
	}))
	for range 2 { // an embedded type may embed another
		for outer, inner := range embed {
			types[outer] = types[outer] || slices.ContainsFunc(inner, func(name string) bool { return types[name] })
		}
	}
	maps.DeleteFunc(types, func(name string, observes bool) bool {
		_, local, _ := strings.Cut(name, ".")
		return !observes || !ast.IsExported(local)
	})
	delete(types, "read.Set") // not a source; it has another test
	require.ElementsMatch(t, slices.Collect(maps.Keys(types)), slices.Collect(maps.Keys(sources(t))), "A: types in the code, B: types in sources")
}

func fileExists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// observers returns the types of a file with a method Observe, by "package.Type". It adds the types
// that structs of the file embed to embed.
func observers(t *testing.T, name string, embed map[string][]string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	types := map[string]bool{}
	for _, d := range file.Decls {
		if decl, ok := d.(*ast.GenDecl); ok {
			recordEmbedded(decl, file.Name.Name, embed)
		}
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil || f.Name.Name != "Observe" {
			continue
		}
		ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && len(id.Name) > 1 {
				types[file.Name.Name+"."+id.Name] = true
			}
			return true
		})
	}
	return types
}

func recordEmbedded(decl *ast.GenDecl, pkg string, embed map[string][]string) {
	for _, spec := range decl.Specs {
		typ, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		s, ok := typ.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, field := range s.Fields.List {
			inner := field.Type
			if star, ok := inner.(*ast.StarExpr); ok {
				inner = star.X
			}
			if id, ok := inner.(*ast.Ident); ok && len(field.Names) == 0 {
				outer := pkg + "." + typ.Name.Name
				embed[outer] = append(embed[outer], pkg+"."+id.Name)
			}
		}
	}
}

// A loop over a source can stop after any series. The runtime panics if the source continues to
// yield, and a lock that it still held would block the next loop.
func TestLoopOverASourceCanStopAtAnySeries(t *testing.T) {
	for name, list := range sources(t) {
		for _, s := range list {
			t.Run(name, func(t *testing.T) {
				require.Positive(t, stopAfterEachRound(t, s.Observe))
				if h, ok := s.(stat.HistogramSource); ok {
					stopAfterEachRound(t, h.Histograms)
				}
			})
		}
	}
}

// stopAfterEachRound runs the loop several times, stopping after each number of rounds. It returns
// the number of rounds.
func stopAfterEachRound[V any](t *testing.T, loop iter.Seq2[*stat.Series, V]) (all int) {
	t.Helper()
	for range loop {
		all++
	}
	for last := range all {
		round := 0
		for range loop {
			if round == last {
				break
			}
			round++
		}
		require.Equal(t, last, round)
	}
	return all
}
