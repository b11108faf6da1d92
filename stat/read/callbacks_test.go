package read_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
)

// callingSource calls a function in each of its methods.
type callingSource struct {
	in        func(method string)
	value     *stat.Series
	histogram *stat.Series
}

func newCallingSource(name string, in func(method string)) *callingSource {
	return &callingSource{in, instrument.BreakerSlowCalls.Series(name, ""), instrument.BreakerCallDuration.Series(name, "")}
}

func (s *callingSource) Observe(yield func(*stat.Series, float64) bool) {
	s.in("Observe")
	yield(s.value, 1)
}

func (s *callingSource) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	s.in("Histograms")
	yield(s.histogram, stat.Histogram{Schema: 3})
}

func TestCallbacksMayCallTheSet(t *testing.T) {
	var set *read.Set[string]
	active, nested, seen := "", false, map[string]int{}
	in := func(method string) {
		if method != active || nested {
			return
		}
		nested = true
		defer func() { nested = false }()
		seen[method]++
		set.Instruments()
		set.Observe(func(string, float64) bool { return true })
		set.Histograms(func(string, stat.Histogram) bool { return true })
		more := newFakeSource(slowCallsPoint("more", 1))
		require.NoError(t, set.Add(more), method)
		require.Error(t, set.Add(newFakeSource(slowCallsPoint("more", 2))), method)
		set.Remove(more)
	}
	var err error
	set, err = read.New(func(s *stat.Series) string { in("form"); return seriesText(s) })
	require.NoError(t, err)
	for _, active = range []string{"Observe", "Histograms", "form", "yield", "yield of a histogram"} {
		source := newCallingSource(active, in)
		require.NoError(t, set.Add(source), active)
		set.Observe(func(string, float64) bool { in("yield"); return true })
		set.Histograms(func(string, stat.Histogram) bool { in("yield of a histogram"); return true })
		require.Error(t, set.Add(newFakeSource(slowCallsPoint(active, 2))), "it reads the owner of the name")
		require.Positive(t, seen[active], active)
		set.Remove(source)
	}
}

// While sources block, other calls of Add, Remove and the readings of sets without them go on.
func TestASlowSourceDelaysNoOtherAdd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, wait := newSet(t), make(chan struct{})
		slow := newCallingSource("slow", func(string) { <-wait })
		errs := make(chan error, 3)
		go func() { errs <- set.Add(slow, newFakeSource(slowCallsPoint("a", 1))) }()
		go func() { errs <- set.Add(slow) }()
		synctest.Wait()
		b := newFakeSource(slowCallsPoint("b", 1))
		require.NoError(t, set.Add(b))
		require.NoError(t, set.Add(newFakeSource(slowCallsPoint("c", 1))))
		set.Remove(b)
		got, _ := readAll(t, set)
		require.Equal(t, metrics{"weir.breaker.slow_calls{c,}": 1}, got)
		close(wait)
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
		got, own := readAll(t, set)
		require.Equal(t, metrics{"weir.breaker.slow_calls{c,}": 1, "weir.breaker.slow_calls{slow,}": 1, slowCallsA: 1}, got)
		require.Empty(t, own)
		set.Remove(slow)
		got, _ = readAll(t, set)
		require.NotContains(t, got, "weir.breaker.slow_calls{slow,}", "it was added once")
	})
}

// Of two sources that show one name and are added at the same time, one is added.
func TestConcurrentAddsCompareWithEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, wait, errs := newSet(t), make(chan struct{}), make(chan error, 2)
		for range 2 {
			go func() { errs <- set.Add(newCallingSource("a", func(string) { <-wait })) }()
		}
		synctest.Wait()
		close(wait)
		first, second := <-errs, <-errs
		require.NotEqual(t, first == nil, second == nil)
		got, own := readAll(t, set)
		require.Equal(t, metrics{slowCallsA: 1}, got)
		require.Empty(t, own)
	})
}
