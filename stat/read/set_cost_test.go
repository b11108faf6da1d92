package read_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// bytesAllocated returns the bytes that f allocates.
func bytesAllocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// namedBreakers returns sources with the 37 series of a breaker each.
func namedBreakers(name string, n int) (list []stat.Source) {
	for k := range n {
		source := newFakeSource()
		for i := range 37 {
			source.points = append(source.points, point{instrument.BreakerTransitions.Series(fmt.Sprint(name, k), fmt.Sprint(i), ""), 1})
		}
		list = append(list, source)
	}
	return list
}

func TestTheCostOfAddAndRemoveDoesNotDependOnOtherSources(t *testing.T) {
	const adds = 500
	cost := func(there int, scraped bool) (add, remove uint64) {
		old, more := namedBreakers("old", there), namedBreakers("more", adds)
		s := newSet(t, old...)
		if scraped {
			for range s.Observe {
			}
		}
		before := old[0].(*fakeSource).reads
		add = bytesAllocated(func() {
			for _, one := range more {
				require.NoError(t, s.Add(one))
			}
		})
		require.Equal(t, before, old[0].(*fakeSource).reads, "sources in the set are not read")
		remove = bytesAllocated(func() { s.Remove(more...) })
		return add, remove
	}
	for _, scraped := range []bool{false, true} {
		addTo10, removeFrom10 := cost(10, scraped)
		addTo2000, removeFrom2000 := cost(2000, scraped)
		require.Less(t, float64(addTo2000), 1.5*float64(addTo10), "bytes of %d Adds to 2,000, and to 10", adds)
		require.Less(t, float64(removeFrom2000), 1.5*float64(removeFrom10)+100_000, "bytes of %d Removes from 2,500, and from 510", adds)
	}
}

// TestSourcesRemovedWithoutAReadingAreReleased adds and removes sources between two readings. The
// set must not keep them, nor their series.
func TestSourcesRemovedWithoutAReadingAreReleased(t *testing.T) {
	s := newSet(t, newFakeSource(slowCallsPoint("stays", 1)))
	var source weak.Pointer[fakeSource]
	var series weak.Pointer[stat.Series]
	for n := range 1000 {
		one := newFakeSource(slowCallsPoint(fmt.Sprint("guest", n), 1))
		require.NoError(t, s.Add(one))
		s.Remove(one)
		source, series = weak.Make(one), weak.Make(one.points[0].series)
	}
	runtime.GC()
	require.Nil(t, source.Value())
	require.Nil(t, series.Value())
	got, own := readAll(t, s)
	require.Len(t, got, 1)
	require.Empty(t, own)
}

func TestASourceThatIsAddedAgainKeepsItsNames(t *testing.T) {
	a := newFakeSource(slowCallsPoint("a", 1))
	s := newSet(t, a)
	readAll(t, s)
	s.Remove(a)
	require.NoError(t, s.Add(a))
	for range 2 {
		require.ErrorContains(t, s.Add(newFakeSource(slowCallsPoint("a", 2))), "two different series are")
		readAll(t, s)
	}
}

// TestASharedSeriesOutlivesItsFirstSource removes the first of two sources that show a series.
func TestASharedSeriesOutlivesItsFirstSource(t *testing.T) {
	shared := slowCallsPoint("a", 1)
	first, second := newFakeSource(shared), newFakeSource(shared)
	s := newSet(t, first, second)
	readAll(t, s)
	s.Remove(first)
	readAll(t, s)
	require.ErrorContains(t, s.Add(newFakeSource(slowCallsPoint("a", 2))), "two different series are")
	s.Remove(second)
	require.NoError(t, s.Add(newFakeSource(slowCallsPoint("a", 2))))
}

// TestANameIsFreeOnceItsSourceNoLongerShowsIt needs no reading in between.
func TestANameIsFreeOnceItsSourceNoLongerShowsIt(t *testing.T) {
	for _, scraped := range []bool{false, true} {
		a := newFakeSource(slowCallsPoint("a", 1))
		s := newSet(t, a)
		if scraped {
			readAll(t, s)
		}
		require.Error(t, s.Add(newFakeSource(slowCallsPoint("a", 2))))
		a.setPoints()
		require.NoError(t, s.Add(newFakeSource(slowCallsPoint("a", 3))))
		got, own := readAll(t, s)
		require.Equal(t, metrics{slowCallsA: 3}, got)
		require.Empty(t, own)
	}
}

// TestASourceThatBlocksInAddBlocksNoReading reads the set while Add waits for a source.
func TestASourceThatBlocksInAddBlocksNoReading(t *testing.T) {
	s := newSet(t, newFakeSource(slowCallsPoint("a", 1)))
	reached, leave, added := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() { added <- s.Add(blockingSource{reached, leave}) }()
	<-reached
	got, _ := readAll(t, s)
	require.Equal(t, metrics{slowCallsA: 1}, got)
	s.Remove(newFakeSource())
	close(leave)
	require.NoError(t, <-added)
}

type blockingSource struct{ reached, leave chan struct{} }

func (b blockingSource) Observe(func(*stat.Series, float64) bool) {
	select {
	case <-b.leave:
	default:
		close(b.reached)
		<-b.leave
	}
}

// TestAnOvertakenReadingForgetsNoNewSource begins a reading, adds a source, reads the set a second
// time, and only then ends the first reading.
func TestAnOvertakenReadingForgetsNoNewSource(t *testing.T) {
	slowOne := &pausingSource{reached: make(chan struct{}), leave: make(chan struct{})}
	s := newSet(t, newFakeSource(slowCallsPoint("a", 1)), slowOne)
	slowOne.armed.Store(true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range s.Observe {
		}
	}()
	<-slowOne.reached
	require.NoError(t, s.Add(newFakeSource(slowCallsPoint("b", 2))))
	readAll(t, s)
	close(slowOne.leave)
	<-done
	require.ErrorContains(t, s.Add(newFakeSource(slowCallsPoint("b", 3))), "two different series are")
}

// pausingSource is a source that blocks its first reading after it was armed.
type pausingSource struct {
	armed          atomic.Bool
	reached, leave chan struct{}
}

func (p *pausingSource) Observe(func(*stat.Series, float64) bool) {
	if p.armed.CompareAndSwap(true, false) {
		close(p.reached)
		<-p.leave
	}
}
