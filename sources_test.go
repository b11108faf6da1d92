package weir_test

import (
	"context"
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
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/weirhttp"
	"github.com/weir-go/weir/window"
)

// sources returns at least one source of each type of the core that is a stat.Source, by
// "package.Type". Each yields all series of its type.
func sources(t *testing.T) map[string][]stat.Source {
	t.Helper()
	timed := breaker.Config{Latency: true, Active: true, MinCalls: 1, SlowCall: time.Hour}
	open := breaker.New("open", timed)
	open.OpenFor(time.Hour)
	rate := weir.Config{Rate: limiter.Per(1, time.Hour), MaxWait: time.Nanosecond, Breaker: timed}
	bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour)})
	latent := window.NewCalls(window.CallsConfig{Name: "w", Latency: true})
	latent.Record(window.Success, time.Second)
	last := window.NewCalls(window.CallsConfig{Name: "w", Last: 10})
	last.Record(window.Success, time.Second)
	keys := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.Per(1, time.Hour), Name: "n"})
	byIP := weirhttp.Policy{Name: "p", Limit: 1, Window: time.Hour, By: weirhttp.ByIP}
	group, keyed := breaker.NewGroup[string]("g", breaker.GroupConfig{Breaker: timed}), hosts(weir.GroupConfig{Gate: rate})
	_, _ = group.Get("a"), keyed.Get("a")
	monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{silentNotifier{}}},
		alert.Rule{Name: "r", Value: alert.Gauge(func() float64 { return 1 }), When: alert.Above(0)})
	monitor.Evaluate(time.Now())

	return map[string][]stat.Source{
		"weir.Gate":             {weir.New("g", rate), weir.New("g", weir.Config{}), weir.Join("open", weir.Parts{Breaker: open})},
		"weir.Group":            {keyed, hosts(weir.GroupConfig{})},
		"breaker.Breaker":       {breaker.New("b", timed), open},
		"breaker.Group":         {group},
		"throttle.Throttle":     {throttle.New("t", throttle.Config{})},
		"limiter.TokenBucket":   {limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Name: "n"})},
		"limiter.FixedWindow":   {limiter.NewFixedWindow(limiter.WindowConfig{Limit: 1, Window: time.Hour, Name: "n"})},
		"limiter.SlidingWindow": {limiter.NewSlidingWindow(limiter.WindowConfig{Limit: 1, Window: time.Hour, Name: "n"})},
		"limiter.SlidingLog":    {limiter.NewSlidingLog(limiter.WindowConfig{Limit: 1, Window: time.Hour, Name: "n"})},
		"limiter.LeakyBucket":   {limiter.NewLeakyBucket(limiter.LeakyBucketConfig{Rate: limiter.Per(1, time.Hour), Name: "n"})},
		"limiter.Joint":         {limiter.NewJoint(limiter.JointConfig{Name: "n"}, bucket)},
		"inflight.Limiter":      {inflight.New(inflight.Config{Limit: 1, Name: "n"})},
		"limiter.Group":         {keys},
		"window.Calls":          {latent, last},
		"alert.Monitor":         {monitor},
		"weirhttp.Limit":        {weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{byIP}})},
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
