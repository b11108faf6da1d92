package prom

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
)

// Collector exports sources to Prometheus. It is a [prometheus.Collector] and safe for concurrent
// use. A Collector must be created by [NewCollector].
//
// Each scrape reads every source once, on the collecting goroutine and without holding a lock. A
// series that a source no longer yields is missing from the next scrape. The zero value does not
// work: use NewCollector.
type Collector struct {
	set      *read.Set[*series]
	families map[*stat.Instrument]*family
	descs    []*prometheus.Desc
	last     atomic.Int64 // the number of samples of the last scrape
	order    atomic.Pointer[order]
	// why the collector cannot be registered; the other fields are not set then
	err error
}

var _ prometheus.Collector = (*Collector)(nil)

// NewCollector returns a collector of the sources. It reads each source once to learn its
// instruments.
//
// Registering the collector fails if [read.New] fails with the sources, or if two of their
// instruments, or two attributes of one instrument, have the same name in Prometheus. A source that
// is given twice, or is part of another source as a breaker is part of its gate, is exported once.
// Of a source with a method Sources, such as a weirconfig.Set, each scrape exports the sources that
// the method returns then: see [read.Set].
//
// A registry accepts only one such collector. Use [Collector.Add] for further sources. If one
// [prometheus.Gatherers] has several registries with collectors, give each of them a label with
// [prometheus.WrapRegistererWith], because the metrics of the collectors themselves have none.
func NewCollector(sources ...stat.Source) *Collector {
	c := &Collector{}
	if c.set, c.err = read.New(c.newSeries, sources...); c.err != nil {
		return c
	}
	instruments := c.set.Instruments()
	families, err := newFamilies(instruments)
	if err != nil {
		c.err = fmt.Errorf("prom: %w", err)
		return c
	}
	c.families = families
	for _, i := range instruments {
		c.descs = append(c.descs, families[i].desc)
	}
	return c
}

func (c *Collector) newSeries(s *stat.Series) *series { return c.families[s.Instrument].newSeries(s) }

// Describe implements [prometheus.Collector]. It sends the descriptors of all instruments of weir
// and of the sources given to [NewCollector], whatever is added or removed later.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	if c.err != nil {
		ch <- prometheus.NewInvalidDesc(c.err)
		return
	}
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect implements [prometheus.Collector]. Series that cannot be exported are left out and
// counted, so that no source can make the scrape fail. For a collector that cannot be registered,
// Collect sends only the error.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	if c.err != nil {
		ch <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(c.err), c.err)
		return
	}
	var spreads []histogramSample
	for l, h := range c.set.Histograms {
		spreads = append(spreads, histogramSample{series: l, histogram: h})
	}
	samples := make([]sample, 0, c.last.Load())
	for l, value := range c.set.Observe {
		samples = append(samples, sample{series: l, value: value})
	}
	c.last.Store(int64(len(samples)))
	// Sent after reading, so that a slow receiver does not delay a source.
	for _, n := range c.sorted(samples) {
		ch <- &samples[n]
	}
	for n := range spreads {
		ch <- &spreads[n]
	}
}

// order is the order in which a registry sorts the metrics of a family. It never changes.
type order struct {
	series  []*series // as the samples came
	indexes []int32   // of series
}

// sorted returns the indexes of the samples in the order of a registry. Sorting takes a quarter of
// the time of a scrape, so this is done only if the series are not those of the last scrape.
func (c *Collector) sorted(samples []sample) []int32 {
	isSame := func(s sample, l *series) bool { return s.series == l }
	if last := c.order.Load(); last != nil && slices.EqualFunc(samples, last.series, isSame) {
		return last.indexes
	}
	next := &order{make([]*series, len(samples)), make([]int32, len(samples))}
	for n, s := range samples {
		next.series[n], next.indexes[n] = s.series, int32(n)
	}
	slices.SortStableFunc(next.indexes, func(a, b int32) int {
		return slices.CompareFunc(samples[a].labels, samples[b].labels, func(a, b *dto.LabelPair) int {
			return strings.Compare(a.GetValue(), b.GetValue())
		})
	})
	c.order.Store(next)
	return next.indexes
}

// Add adds sources, which are exported from the next scrape. It returns an error and adds none of
// them if registering them would have failed, or if a source has an instrument that is neither
// weir's nor that of a source given to [NewCollector]. Sources that were added before are ignored.
func (c *Collector) Add(sources ...stat.Source) error {
	if c.err != nil {
		return fmt.Errorf("prom: the collector cannot be used: %w", c.err)
	}
	return c.set.Add(sources...)
}

// Remove removes the sources that are == to those given. The next scrape lacks their series, except
// for those that another source yields too.
func (c *Collector) Remove(sources ...stat.Source) {
	if c.err == nil {
		c.set.Remove(sources...)
	}
}
