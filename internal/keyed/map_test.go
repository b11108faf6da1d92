package keyed

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The hashes of a table are random, so equal hashes are tested on the map itself.
func TestAMapSeparatesKeysWithTheSameHash(t *testing.T) { // scenario 66
	var m Map[string, int]
	const hash = 1<<64 - 1 // of the last slot, so that searches continue at the beginning
	put := func(key string, until, now int64) (evicted int) {
		s, found := m.Place(hash, key, now)
		require.False(t, found, key)
		s, evicted = m.Add(s, hash, key, now)
		require.Zero(t, s.Value)
		s.Until, s.Value = until, int(until)+1
		return evicted
	}
	find := func(key string) int64 {
		s := m.Find(hash, key)
		if s == nil {
			return 0
		}
		require.EqualValues(t, s.Until+1, s.Value)
		return s.Until
	}
	require.Zero(t, find("a"), "of an empty map")
	for i, key := range []string{"a", "b", "c"} {
		require.Zero(t, put(key, int64(10*(i+1)), 0))
	}
	require.Equal(t, []int64{10, 20, 30, 0}, []int64{find("a"), find("b"), find("c"), find("d")})

	require.Equal(t, 1, put("d", 40, 11), "replaces the idle key")
	require.Equal(t, []int64{0, 20, 30, 40}, []int64{find("a"), find("b"), find("c"), find("d")})
	require.Equal(t, 3, m.Len())
	require.Equal(t, 3, m.taken)
	require.EqualValues(t, 10, m.LastEvicted)

	require.Equal(t, 1, m.Evict(100, 25))
	require.Equal(t, []int64{0, 30, 40}, []int64{find("b"), find("c"), find("d")}, "keys behind it are still found")
	require.Equal(t, 2, m.Len())
	require.EqualValues(t, 20, m.LastEvicted)
	require.Zero(t, m.Evict(100, 25))
	require.Zero(t, put("e", 50, 25), "takes the free slot")
	require.Equal(t, 3, m.taken)

	require.Equal(t, 1, m.rebuild(35))
	require.Equal(t, []int64{0, 40, 50}, []int64{find("c"), find("d"), find("e")})
	require.Equal(t, 2, m.Len())
	require.Equal(t, 2, m.taken)
	require.EqualValues(t, 30, m.LastEvicted)
}

func TestAMapGrowsWithItsKeys(t *testing.T) {
	var m Map[int, struct{}]
	hash := func(i int) uint64 { return uint64(i+1) * 0x9e3779b97f4a7c15 }
	for i := range 10_000 {
		s, found := m.Place(hash(i), i, 0)
		require.False(t, found)
		s, evicted := m.Add(s, hash(i), i, 0)
		require.Zero(t, evicted)
		s.Until = int64(i)
	}
	require.Equal(t, 10_000, m.Len())
	require.LessOrEqual(t, len(m.slots), 10_000*8/5+minSlots)
	for i := range 10_000 {
		require.EqualValues(t, i, m.Find(hash(i), i).Until)
	}
}

// A map does what a Go map does, and evicts only entries that are idle.
func TestAMapDoesWhatAGoMapDoes(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		var m Map[int, int]
		want := map[int]Slot[int, int]{}
		hashes := uint64(1) << r.IntN(64) // few different ones, or many
		hash := func(key int) uint64 { return uint64(key) * 0x9e3779b97f4a7c15 / hashes * hashes }
		drop := func(evicted int, now int64) {
			before := len(want)
			for key, e := range want {
				if m.Find(hash(key), key) == nil {
					require.Less(t, e.Until, now)
					require.GreaterOrEqual(t, m.LastEvicted, e.Until)
					delete(want, key)
				}
			}
			require.Equal(t, evicted, before-len(want))
		}
		for now := range int64(3000) {
			key := r.IntN(100)
			switch op := r.IntN(10); {
			case op < 6:
				s, found := m.Place(hash(key), key, now)
				_, known := want[key]
				require.Equal(t, known, found)
				if !found {
					var evicted int
					s, evicted = m.Add(s, hash(key), key, now)
					s.Value = r.Int()
					s.Until = now + r.Int64N(200)
					drop(evicted, now)
				}
				require.Equal(t, key, s.Key)
				want[key] = *s
			case op < 8:
				s := m.Find(hash(key), key)
				require.Equal(t, want[key].Value, func() int {
					if s == nil {
						return 0
					}
					return s.Value
				}())
				if s != nil {
					m.Remove(s)
					delete(want, key)
				}
			default:
				drop(m.Evict(r.IntN(40), now), now)
			}
			require.Equal(t, len(want), m.Len())
		}
		all := 0
		for s := range m.All() {
			require.Equal(t, want[s.Key], *s)
			all++
		}
		require.Len(t, want, all)
	}
}
