package breaker_test

import (
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

const longKeyMembers = 128 // the MaxKeys of the groups that fillGroup makes

// fillGroup makes a group, gets MaxKeys keys, and requires that the given number of them became
// members.
func fillGroup[K comparable](t *testing.T, members int, key func(i int) K) *breaker.Group[K] {
	g := breaker.NewGroup[K]("g", breaker.GroupConfig{MaxKeys: longKeyMembers})
	for i := range longKeyMembers {
		g.Get(key(i))
	}
	require.Equal(t, members, g.Len())
	require.EqualValues(t, longKeyMembers-members, g.Stats().Unguarded)
	return g
}

// A client that chooses the keys can make a group hold at most MaxKeys times a few kilobytes. That
// is so however long the keys are, and however long the strings are that the keys are parts of.
func TestGroupIsBoundedInBytesWhateverTheKeys(t *testing.T) {
	type named string
	type pair struct{ a, b string }
	long := func(i int) string { return fmt.Sprint(i, strings.Repeat("x", 1<<16)) }
	for name, group := range map[string]func() any{
		"long strings":          func() any { return fillGroup(t, longKeyMembers, long) },
		"parts of long strings": func() any { return fillGroup(t, longKeyMembers, func(i int) named { return named(long(i)[:20]) }) },
		"long strings within other keys": func() any {
			return fillGroup(t, 0, func(i int) pair { return pair{"a", long(i)} })
		},
		"any": func() any { return fillGroup(t, 0, func(i int) any { return [2]any{i, long(i)} }) },
	} {
		t.Run(name, func(t *testing.T) {
			before := heapInUse()
			g := group()
			used := heapInUse() - before
			t.Logf("%d bytes each", used/longKeyMembers)
			require.Less(t, used, longKeyMembers*5000)
			runtime.KeepAlive(g)
		})
	}
}

func TestGroupDistinguishesLongKeys(t *testing.T) {
	g := breaker.NewGroup[string]("g", breaker.GroupConfig{})
	long := strings.Repeat("x", 1000)
	a, b := g.Get(long+"a"), g.Get(long+"b")
	require.NotSame(t, a, b)
	require.Same(t, a, g.Get(long+"a"))
	require.Same(t, b, g.Get(long+"b"))
	require.Equal(t, 2, g.Len())
	for key := range g.All() {
		require.Len(t, key, 256)
		require.True(t, strings.HasPrefix(key, long[:100]))
	}
	whole := strings.Repeat("y", 256)
	g.Get(whole)
	require.Contains(t, maps.Collect(g.All()), whole, "what is not longer stands as it is")
}

func TestGroupAcceptsKeysUpToMaxText(t *testing.T) {
	type pair struct {
		n    int
		path [2]any
	}
	g := breaker.NewGroup[pair]("g", breaker.GroupConfig{})
	key := pair{1, [2]any{strings.Repeat("x", 900), nil}}
	b := g.Get(key)
	require.Same(t, b, g.Get(key))
	require.Zero(t, g.Stats().Unguarded)
	key.path[1] = strings.Repeat("y", 200)
	require.Equal(t, breaker.ForcedClosed, g.Get(key).State())
}

// longTextKey is a key whose text is longer than the key.
type longTextKey int

func (longTextKey) String() string { return strings.Repeat("日本", 1<<18) }

func TestGroupBoundsTheTextOfAKey(t *testing.T) {
	g := breaker.NewGroup[longTextKey]("g", breaker.GroupConfig{})
	g.Get(1).OpenFor(time.Hour)
	err := g.Get(1).Check()
	require.ErrorContains(t, err, "日本日本")
	require.NotContains(t, err.Error(), "\uFFFD", "it is cut between characters")
	require.Less(t, len(err.Error()), 400)
}

func TestGroupGuardsAKeyWithUpTo1024BytesOfText(t *testing.T) {
	type pair struct{ a, b string }
	g := breaker.NewGroup[pair]("g", breaker.GroupConfig{})
	g.Get(pair{"a", strings.Repeat("x", 1023)})
	require.Equal(t, breaker.GroupStats{Members: 1}, g.Stats())
	g.Get(pair{"a", strings.Repeat("x", 1024)})
	require.Equal(t, breaker.GroupStats{Members: 1, Unguarded: 1}, g.Stats())
}
