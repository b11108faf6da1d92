package busy_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/busy"
)

// oracle counts the refusals of each key in the present and the previous period.
type oracle struct {
	began             time.Time
	period            int64
	present, previous map[string]int64
}

func (o *oracle) begin() {
	switch later := int64(time.Since(o.began)/busy.Period) - o.period; {
	case later == 1:
		o.previous, o.present = o.present, map[string]int64{}
	case later > 1:
		o.previous, o.present = nil, map[string]int64{}
	}
	o.period = int64(time.Since(o.began) / busy.Period)
}

func (o *oracle) counts() (counts map[string]int64, all int64) {
	counts = map[string]int64{}
	for _, period := range []map[string]int64{o.present, o.previous} {
		for key, n := range period {
			counts[key] += n
			all += n
		}
	}
	return counts, all
}

// check compares a sketch that shows keys with the counts of an oracle.
func check(t *testing.T, s *busy.Sketch[string], counts map[string]int64, all int64) {
	t.Helper()
	keys, found := s.Busiest("api", 1e6), map[string]bool{}
	for i, k := range keys {
		require.Equal(t, "api", k.Limiter)
		require.False(t, found[k.Key], "%s is listed twice", k.Key)
		found[k.Key] = true
		require.LessOrEqual(t, k.AtLeast, counts[k.Key], k.Key)
		require.GreaterOrEqual(t, k.AtMost, counts[k.Key], k.Key)
		require.LessOrEqual(t, k.AtMost-k.AtLeast, all/busy.Entries, "error of %s of %d refusals", k.Key, all)
		if i > 0 {
			require.GreaterOrEqual(t, keys[i-1].AtLeast, k.AtLeast)
		}
	}
	for key, n := range counts {
		require.True(t, found[key] || n <= all/busy.Entries, "%s with %d of %d refusals is missing", key, n, all)
	}
}

func TestBoundsHoldWhateverIsRefused(t *testing.T) {
	for seed := range uint64(12) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			s := busy.New[string](true)
			o := &oracle{began: time.Now(), present: map[string]int64{}}
			zipf := rand.NewZipf(random, 1.01+random.Float64(), 1+random.Float64()*8, 1+random.Uint64N(5000))
			for range 1500 {
				if random.IntN(500) == 0 {
					time.Sleep(time.Duration(random.Int64N(int64(busy.Period))))
				}
				o.begin()
				key := fmt.Sprint("key ", zipf.Uint64())
				if random.IntN(4) == 0 {
					key = fmt.Sprint("new ", random.Uint64()) // never comes again
				}
				s.Add(key)
				o.present[key]++
				if random.IntN(300) == 0 {
					counts, all := o.counts()
					check(t, s, counts, all)
				}
			}
			counts, all := o.counts()
			check(t, s, counts, all)
		})
	}
}

func TestFewKeysAreCountedExactly(t *testing.T) {
	s := busy.New[int](true)
	for i := range 32 {
		for range i + 1 {
			s.Add(i)
		}
	}
	keys := s.Busiest("users", 3)
	require.Equal(t, []busy.Key{
		{Limiter: "users", Key: "31", AtLeast: 32, AtMost: 32},
		{Limiter: "users", Key: "30", AtLeast: 31, AtMost: 31},
		{Limiter: "users", Key: "29", AtLeast: 30, AtMost: 30},
	}, keys)
	require.Empty(t, s.Busiest("users", 0))
	require.Empty(t, s.Busiest("users", -1))
	require.Len(t, s.Busiest("users", 1000), 32)
}

// A flood of keys that come once each must not hide the key that comes often.
func TestFloodOfKeysDoesNotHideABusyKey(t *testing.T) {
	s := busy.New[int](true)
	for i := range 20_000 {
		s.Add(1_000_000 + i)
		if i%10 == 0 {
			s.Add(7)
		}
	}
	first := s.Busiest("", 1)[0]
	require.Equal(t, "7", first.Key)
	require.LessOrEqual(t, first.AtLeast, int64(2_000))
	require.GreaterOrEqual(t, first.AtMost, int64(2_000))
}

func TestRefusalsAreForgottenAfterTwoPeriods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := busy.New[string](true)
		s.Add("a")
		time.Sleep(busy.Period)
		s.Add("a")
		require.Equal(t, []busy.Key{{Key: "a", AtLeast: 2, AtMost: 2}}, s.Busiest("", 9))
		time.Sleep(busy.Period)
		require.Equal(t, []busy.Key{{Key: "a", AtLeast: 1, AtMost: 1}}, s.Busiest("", 9))
		time.Sleep(busy.Period)
		require.Empty(t, s.Busiest("", 9))
		s.Add("b")
		time.Sleep(3 * busy.Period)
		s.Add("c")
		require.Equal(t, []busy.Key{{Key: "c", AtLeast: 1, AtMost: 1}}, s.Busiest("", 9))
	})
}

// A sketch that is a package variable was made before the clock of a bubble starts.
var packageSketch = busy.New[string](true)

func TestSketchWorksBeforeItsCreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		packageSketch.Add("a")
		time.Sleep(time.Second)
		packageSketch.Add("a")
		require.Equal(t, []busy.Key{{Key: "a", AtLeast: 2, AtMost: 2}}, packageSketch.Busiest("", 9))
	})
}

func TestConcurrentRefusalsAreAllCounted(t *testing.T) {
	for _, show := range []bool{false, true} {
		s := busy.New[int](show)
		var counting, reading sync.WaitGroup
		stop := make(chan struct{})
		reading.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					s.Busiest("", 10)
					runtime.Gosched()
				}
			}
		})
		for range 8 {
			counting.Go(func() {
				for i := range 1000 {
					s.Add(i % 20)
				}
			})
		}
		counting.Wait()
		close(stop)
		reading.Wait()
		for _, k := range s.Busiest("", 100) {
			require.Equal(t, int64(400), k.AtLeast, k.Key)
			require.Equal(t, int64(400), k.AtMost, k.Key)
		}
		require.Len(t, s.Busiest("", 100), 20)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	for show, most := range map[bool]uint64{false: 8 << 10, true: 30 << 10} {
		const sketches = 20
		list := make([]*busy.Sketch[string], sketches)
		fill := func() {
			for i := range list {
				list[i] = busy.New[string](show)
				for period := range 2 {
					for n := range 300 {
						list[i].Add(fmt.Sprint(n, period) + strings.Repeat("€", 500))
					}
					list[i].Turn()
				}
			}
		}
		fill() // what is made once
		clear(list)
		before := heapBytes()
		fill()
		used := (heapBytes() - before) / sketches
		require.Less(t, used, most, "show=%t", show)
		require.Greater(t, used, most/3, "the test measures nothing")
		runtime.KeepAlive(list)
	}
}

func heapBytes() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestCountingAllocatesNothingForAKnownKey(t *testing.T) {
	for _, show := range []bool{false, true} {
		s := busy.New[string](show)
		s.Add("a")
		require.Zero(t, testing.AllocsPerRun(100, func() { s.Add("a") }))
	}
}

func TestLateGoroutineDeletesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := busy.New[string](true)
		time.Sleep(2 * busy.Period)
		s.Add("a")
		s.AddLate("a", 1)
		s.Add("a")
		require.Equal(t, []busy.Key{{Key: "a", AtLeast: 3, AtMost: 3}}, s.Busiest("", 9))
	})
}

// A sketch in a package variable is used in one bubble after the other.
func TestSketchStartsAgainWithEachClock(t *testing.T) {
	s := busy.New[string](true)
	s.Add("real")
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			require.Empty(t, s.Busiest("l", 10))
			s.Add("old")
			require.Equal(t, []busy.Key{{"l", "old", 1, 1}}, s.Busiest("l", 10))
			time.Sleep(3 * busy.Period)
			s.Add("new")
			require.Equal(t, []busy.Key{{"l", "new", 1, 1}}, s.Busiest("l", 10))
		})
	}
	require.Empty(t, s.Busiest("l", 10))
}
