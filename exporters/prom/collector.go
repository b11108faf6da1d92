package prom

import (
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
)

// Collector shows sources to Prometheus. It is a [prometheus.Collector], made
// with [NewCollector], and safe for concurrent use.
//
// Each scrape reads every source once, on the goroutine that collects and under
// no lock. A series that a source no longer yields is gone from the next scrape.
type Collector struct {
	set      *read.Set[*line]
	families map[*stat.Instrument]*family
	descs    []*prometheus.Desc
	last     atomic.Int64 // how many samples the last scrape had
	err      error        // why it cannot be registered; nothing else is of use then
}

var _ prometheus.Collector = (*Collector)(nil)

// NewCollector returns a collector of the sources, which it reads once to learn
// their instruments.
//
// Registering it fails if [read.New] fails with the sources, or if two of
// their instruments, or two attributes of one, have the same name in Prometheus.
// A source that is given twice, or is part of another as a breaker is of its
// gate, is fine and exported once.
//
// A registry takes one such collector: further sources are for [Collector.Add].
func NewCollector(sources ...stat.Source) *Collector {
	c := &Collector{}
	if c.set, c.err = read.New(c.line, sources...); c.err != nil {
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

func (c *Collector) line(s *stat.Series) *line { return c.families[s.Instrument].line(s) }

// Describe implements [prometheus.Collector]. It sends the same descriptors
// whatever is added or removed: those of all instruments of the library, and of
// those that the sources given to [NewCollector] showed beside them.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	if c.err != nil {
		ch <- prometheus.NewInvalidDesc(c.err)
		return
	}
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect implements [prometheus.Collector]. What cannot be exported is left out
// and counted, so that no source can make the scrape fail. A collector that
// cannot be registered has nothing to collect but the reason.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	if c.err != nil {
		ch <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(c.err), c.err)
		return
	}
	var spreads []spread
	for l, h := range c.set.Histograms {
		spreads = append(spreads, spread{line: l, histogram: h})
	}
	samples := make([]sample, 0, c.last.Load())
	for l, value := range c.set.Observe {
		samples = append(samples, sample{line: l, value: value})
	}
	c.last.Store(int64(len(samples)))
	// Sent only now: a receiver that is slow must not keep a source waiting.
	for n := range samples {
		ch <- &samples[n]
	}
	for n := range spreads {
		ch <- &spreads[n]
	}
}

// Add adds sources, which the next scrape shows. It adds none of them and
// returns an error where registering them would have failed, or where one shows
// an instrument that is neither the library's nor known from [NewCollector].
// Sources that are there already change nothing.
func (c *Collector) Add(sources ...stat.Source) error {
	if c.err != nil {
		return fmt.Errorf("prom: the collector cannot be used: %w", c.err)
	}
	return c.set.Add(sources...)
}

// Remove removes the sources: their series are gone from the next scrape, save
// those that another source shows too. Sources are found by ==.
func (c *Collector) Remove(sources ...stat.Source) {
	if c.err == nil {
		c.set.Remove(sources...)
	}
}
