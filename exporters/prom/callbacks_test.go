package prom_test

import (
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/exporters/prom"
	"github.com/weir-go/weir/stat"
)

// callingSource calls a function in each of its methods.
type callingSource struct {
	*fakeSource
	in func(method string)
}

func (s *callingSource) Observe(yield func(*stat.Series, float64) bool) {
	s.in("Observe")
	s.fakeSource.Observe(yield)
}

func (s *callingSource) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	s.in("Histograms")
	s.fakeSource.Histograms(yield)
}

// samplesOf collects once and returns the number of samples.
func samplesOf(c *prom.Collector) int {
	metrics := make(chan prometheus.Metric, 100)
	c.Collect(metrics)
	return len(metrics)
}

func TestSourcesMayCallTheCollector(t *testing.T) {
	c := prom.NewCollector()
	empty := samplesOf(c)
	active, nested, seen := "", false, map[string]int{}
	in := func(method string) {
		if method != active || nested {
			return
		}
		nested = true
		defer func() { nested = false }()
		seen[method]++
		more := newFakeSource(slowCallsPoint("more", 1))
		require.NoError(t, c.Add(more), method)
		require.Greater(t, samplesOf(c), empty)
		c.Describe(make(chan *prometheus.Desc, 1000))
		c.Remove(more)
	}
	for _, active = range []string{"Observe", "Histograms"} {
		source := &callingSource{newFakeSource(slowCallsPoint("a", 1)), in}
		require.NoError(t, c.Add(source))
		require.Equal(t, 1, seen[active], "by Add")
		require.Equal(t, empty+1, samplesOf(c))
		require.Equal(t, 2, seen[active], "by a scrape")
		c.Remove(source)
	}
}

// A source blocks in Add and in a scrape. Other calls of Add and scrapes without it go on, and a
// receiver that takes no sample delays none of them.
func TestASlowSourceDelaysNoOtherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := prom.NewCollector()
		empty := samplesOf(c)
		wait, added := make(chan struct{}), make(chan error, 1)
		source := &callingSource{newFakeSource(slowCallsPoint("slow", 1)), func(string) { <-wait }}
		go func() { added <- c.Add(source) }()
		synctest.Wait()
		require.NoError(t, c.Add(newFakeSource(slowCallsPoint("a", 1))))
		slow := make(chan prometheus.Metric)
		go c.Collect(slow)
		synctest.Wait()
		require.Equal(t, empty+1, samplesOf(c))
		for range empty + 1 {
			<-slow
		}
		close(wait)
		require.NoError(t, <-added)

		wait = make(chan struct{})
		scraped := make(chan int)
		go func() { scraped <- samplesOf(c) }()
		synctest.Wait()
		require.NoError(t, c.Add(newFakeSource(slowCallsPoint("b", 1))))
		c.Remove(source)
		require.Equal(t, empty+2, samplesOf(c))
		close(wait)
		require.GreaterOrEqual(t, <-scraped, empty+2)
	})
}
