package keyed_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/keyed"
)

// item is a value that says itself whether it is idle.
type item struct {
	busy  atomic.Bool
	wait  time.Duration // for which it says to be busy
	asked int
	used  time.Time // as IsIdle was told last
	left  atomic.Int32
}

func (i *item) IsIdle(_, used time.Time) (idle bool, busy time.Duration) {
	i.asked++
	i.used = used
	return !i.busy.Load(), i.wait
}

func (i *item) Leave(int) { i.left.Add(1) }

type table = keyed.Table[int, item, *item]

var t0 = time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)

func newTable(maxKeys int) *table { return keyed.New[int, item](maxKeys, t0) }

// add adds keys that were not there.
func add(t *testing.T, of *table, now time.Time, keys ...int) (items []*item) {
	t.Helper()
	for _, key := range keys {
		fills := 0
		i := of.Add(key, now, func(*item) { fills++ })
		require.NotNil(t, i, key)
		require.Equal(t, 1, fills)
		items = append(items, i)
	}
	return items
}

func TestATableHasOneValuePerKey(t *testing.T) {
	of := newTable(10)
	require.Nil(t, of.Get(1))
	i := add(t, of, t0, 1)[0]
	require.Same(t, i, of.Get(1))
	require.Same(t, i, of.Add(1, t0, func(*item) { t.Error("it is there") }))
	require.Equal(t, 1, of.Len())
	require.Zero(t, testing.AllocsPerRun(100, func() { of.Get(1) }))
	for key, v := range of.All() {
		require.Equal(t, 1, key)
		require.Same(t, i, v)
	}
}

// A small table has one shard, so that all its room can be used. The shards together have room for
// the keys of the table.
func TestTheShardsOfATable(t *testing.T) {
	for most, shards := range map[int]int{1: 1, 127: 1, 128: 1, 129: 2, 256: 2, 257: 3, 300: 3, 10_000: 79, 1_000_000: 256} {
		require.Equal(t, shards, newTable(most).Shards(), "of %d", most)
	}
	of := newTable(300)
	for key := range 3000 {
		if i := of.Add(key, t0, func(*item) {}); i != nil {
			i.busy.Store(true)
		}
	}
	require.Equal(t, 300, of.Len())
	require.True(t, of.IsFull())
	sum := 0
	for number := range of.Shards() {
		read := 0
		values := of.AppendShard(number, nil, func() { read++ })
		require.Equal(t, 1, read)
		require.Len(t, values, 100)
		sum += len(values)
	}
	require.Equal(t, of.Len(), sum)
}

func TestAFullTableEvictsAnIdleValueThatWasNotLookedUpLately(t *testing.T) {
	of := newTable(3)
	items := map[int]*item{1: nil, 2: nil, 3: nil}
	for key := range items {
		items[key] = add(t, of, t0, key)[0]
	}
	add(t, of, t0, 4) // all were looked up, so one of them had to go
	require.EqualValues(t, 1, of.Evictions())
	left := maps.Collect(of.All()) // which is no lookup
	for key, i := range items {
		if left[key] == nil {
			require.EqualValues(t, 1, i.left.Load())
			delete(items, key)
		}
	}
	require.Len(t, items, 2)
	keys := slices.Collect(maps.Keys(items))
	of.Get(keys[0])
	u := t0.Add(time.Minute)
	add(t, of, u, 5)
	require.Same(t, items[keys[0]], of.Get(keys[0]), "it was looked up")
	require.Nil(t, of.Get(keys[1]))
	require.EqualValues(t, 2, of.Evictions())
	items[keys[0]].busy.Store(true)
	for key := range 10 {
		add(t, of, u, 6+key)
		require.Same(t, items[keys[0]], of.Get(keys[0]), "it is busy")
	}
	require.Equal(t, 3, of.Len())
}

// While many new keys come, the checks go round the whole table, so values that are looked up often
// stay.
func TestOftenUsedValuesStayDuringAFlood(t *testing.T) {
	const often, every, rounds = 64, 32, 300
	of := newTable(128)
	for key := range often {
		add(t, of, t0, key)
	}
	lost := 0
	for flood := range every * rounds {
		add(t, of, t0, often+flood)
		for key := range often {
			if flood%every == 0 && of.Get(key) == nil {
				lost++
				add(t, of, t0, key)
			}
		}
	}
	require.Less(t, lost, often*rounds/50)
}

// IsIdle is told when a check last found that the value was looked up.
func TestAValueIsToldWhenItWasUsed(t *testing.T) {
	of := newTable(1)
	i := add(t, of, t0, 1)[0]
	i.busy.Store(true)
	for minute := range 5 {
		u := t0.Add(time.Duration(minute) * time.Minute)
		require.Nil(t, of.Add(2, u, func(*item) { t.Error("there is no room") }))
		require.Equal(t, t0, i.used)
	}
	of.Get(1)
	u := t0.Add(time.Hour)
	require.Nil(t, of.Add(2, u, func(*item) {}))
	require.Equal(t, u, i.used)
}

// A value that says for how long it is busy is not asked before, unless that is longer than 10
// seconds or the clock goes back.
func TestABusyValueIsAskedAgainWhenItMayBeIdle(t *testing.T) {
	of := newTable(1)
	i := add(t, of, t0, 1)[0]
	i.busy.Store(true)
	i.wait = time.Minute
	asks := func(u time.Time) bool {
		before := i.asked
		require.Nil(t, of.Add(2, u, func(*item) { t.Error("there is no room") }))
		return i.asked > before
	}
	u := t0.Add(time.Hour)
	require.True(t, asks(u))
	require.False(t, asks(u))
	require.False(t, asks(u.Add(10*time.Second-1)))
	require.True(t, asks(u.Add(10*time.Second)))
	require.True(t, asks(u.Add(-1)), "the clock went back")
	i.wait = time.Second
	u = u.Add(time.Minute)
	require.True(t, asks(u))
	require.False(t, asks(u.Add(time.Second-1)))
	i.busy.Store(false)
	require.Nil(t, of.Add(2, u.Add(time.Second-1), func(*item) {}), "it says that it is busy")
	require.NotNil(t, of.Add(2, u.Add(time.Second), func(*item) {}))
	require.NotNil(t, of.Add(3, u, func(*item) {}), "the value that is new was not asked yet")
}

// After an attempt without room, the caller may save others for a while. A clock that goes back
// ends that, and so does a key that is forgotten.
func TestATableSaysThatThereWasNoRoom(t *testing.T) {
	of := newTable(1)
	add(t, of, t0, 1)[0].busy.Store(true)
	require.False(t, of.WasFull(2, t0, time.Hour))
	u := t0.Add(time.Minute)
	require.Nil(t, of.Add(2, u, func(*item) {}))
	require.True(t, of.WasFull(2, u, time.Second))
	require.True(t, of.WasFull(2, u.Add(time.Second-1), time.Second))
	require.False(t, of.WasFull(2, u.Add(time.Second), time.Second))
	require.False(t, of.WasFull(2, u.Add(-1), time.Second))
	require.NotNil(t, of.Forget(1))
	require.False(t, of.WasFull(2, u, time.Second))
}

func TestForgetRemovesABusyValueToo(t *testing.T) {
	of := newTable(3)
	items := add(t, of, t0, 1, 2, 3)
	items[1].busy.Store(true)
	require.Same(t, items[1], of.Forget(2))
	require.Nil(t, of.Forget(2))
	require.EqualValues(t, 1, items[1].left.Load())
	require.Equal(t, 2, of.Len())
	require.Zero(t, of.Evictions())
	add(t, of, t0, 2)
	require.Equal(t, 3, of.Len())
}

func TestEvictIdleEvictsAValueThatIsNotLookedUp(t *testing.T) {
	of := newTable(3)
	items := add(t, of, t0, 1, 2)
	items[1].busy.Store(true)
	for range 3 {
		of.EvictIdle(2, t0)
		of.EvictIdle(3, t0)
		require.Equal(t, 2, of.Len())
		of.Get(1)
		of.EvictIdle(1, t0) // it was looked up since the last check
	}
	of.EvictIdle(1, t0)
	require.Equal(t, 1, of.Len())
	require.EqualValues(t, 1, of.Evictions())
}

// A new key checks a bounded number of values, and the next key continues from there.
func TestANewKeyChecksABoundedNumberOfValues(t *testing.T) {
	const most = 100_000
	of := newTable(most)
	for key := range most {
		if i := of.Add(key, t0, func(*item) {}); i != nil {
			i.busy.Store(true)
		}
	}
	asked := func() (n int) {
		for _, i := range of.All() {
			n += i.asked
		}
		return n
	}
	key := -1
	for of.Add(key, t0, func(*item) {}) != nil { // until a shard is full
		key--
	}
	of.Add(key, t0, func(*item) {}) // so that it is noted which values were looked up
	before := asked()
	require.Nil(t, of.Add(key, t0, func(*item) {}))
	require.Equal(t, 256, asked()-before)
}

// Callers look up, add and forget keys at once. Each key has one value, and a value leaves at most
// once.
func TestATableUnderConcurrentUse(t *testing.T) {
	of := newTable(50)
	var wg sync.WaitGroup
	for worker := range uint64(4) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(worker, 1))
			for range 20_000 {
				key := r.IntN(200)
				i := of.Get(key)
				if i == nil {
					i = of.Add(key, time.Now(), func(*item) {})
				}
				switch {
				case i == nil:
				case r.IntN(100) == 0:
					of.Forget(key)
				case i.left.Load() > 1:
					t.Error("it left twice")
				}
				if of.Len() > 50 {
					t.Error("there are too many keys")
				}
			}
		})
	}
	wg.Wait()
	seen := map[int]bool{}
	for key, i := range of.All() {
		require.False(t, seen[key])
		seen[key] = true
		require.Zero(t, i.left.Load())
		require.Same(t, i, of.Get(key))
	}
	require.Len(t, seen, of.Len())
	require.Positive(t, of.Evictions())
}
