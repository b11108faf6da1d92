package breaker_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

type ctx = context.Context

// after returns the time d after t0.
func after(d time.Duration) time.Time { return t0.Add(d) }

// newEvictableGroup returns a group in which every member can be evicted.
func newEvictableGroup(most int, c breaker.Config) *breaker.Group[string] {
	return breaker.NewGroupAt[string]("g", breaker.GroupConfig{Breaker: c, MaxKeys: most, MaxSeries: breaker.Off}, t0)
}

// makeKeyCall makes a call of the key that takes no time.
func makeKeyCall(t *testing.T, g *breaker.Group[string], u time.Time, key string, o breaker.Outcome) {
	t.Helper()
	p, err := g.GetAt(u, key).AllowAt(u)
	require.NoError(t, err)
	p.RecordAt(u, o)
}

// addKeys adds the given number of new keys, each of which must replace another key.
func addKeys(g *breaker.Group[string], u time.Time, keys int) {
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

// countingKey is a key that counts the calls of its String method, which uses the group.
type countingKey struct{ n int }

var (
	keyTextCalls     atomic.Int64
	countingKeyGroup atomic.Pointer[breaker.Group[countingKey]]
)

func (w countingKey) String() string {
	keyTextCalls.Add(1)
	if w.n > 0 {
		countingKeyGroup.Load().Get(countingKey{w.n - 1})
	}
	return fmt.Sprint("key ", w.n/2)
}

func TestGroupMakesTheTextOfAKeyOnce(t *testing.T) {
	g := breaker.NewGroup[countingKey]("g", breaker.GroupConfig{})
	countingKeyGroup.Store(g)
	keyTextCalls.Store(0)
	for range 3 {
		g.Get(countingKey{3})
		groupMetrics(g)
	}
	require.EqualValues(t, 4, keyTextCalls.Load())
	require.Equal(t, 4, g.Len())
	lines := groupMetrics(g)
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
	lines := groupMetrics(g)
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
