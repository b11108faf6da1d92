package read_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// naiveSet is a simple and slow implementation of a set. It remembers only which source showed each
// ID: at the last reading, or when it was added since.
type naiveSet struct {
	sources []*addedSource
	live    map[string]shownSeries
	added   map[string]shownSeries
	own     metrics
}

// addedSource is a source, with the times of its addition and removal.
type addedSource struct{ *fakeSource }

// shownSeries is a series and the first source in the set that showed it.
type shownSeries struct {
	series *stat.Series
	source *addedSource
}

// readingResult holds the series of one reading by ID, and the faults of the others.
type readingResult struct {
	points map[string]point
	faults []string
}

// readAll reads the sources. Series that were live come first, and then the others, each in the
// order of the sources.
func (n *naiveSet) readAll(sources []*addedSource) *readingResult {
	p := &readingResult{points: map[string]point{}}
	wasLive := func(q point) bool { return faultOf(q.series) == "" && n.live[q.series.ID()].series == q.series }
	all := n.observe(sources)
	for _, q := range all {
		if wasLive(q) {
			p.addPoint(q)
		}
	}
	for _, q := range all {
		if !wasLive(q) {
			p.addPoint(q)
		}
	}
	return p
}

func (n *naiveSet) observe(sources []*addedSource) (all []point) {
	for _, s := range sources {
		all = append(all, s.points...)
		if s.broken != nil {
			n.own["source_panics{}"]++
		}
	}
	return all
}

func (p *readingResult) addPoint(q point) {
	if fault := faultOf(q.series); fault != "" {
		p.faults = append(p.faults, fault)
		return
	}
	switch owner, ok := p.points[q.series.ID()]; {
	case !ok:
		p.points[q.series.ID()] = q
	case owner.series != q.series:
		p.faults = append(p.faults, "duplicate")
	}
}

func faultOf(s *stat.Series) string {
	switch {
	case s == nil || len(s.Values) != len(s.Instrument.Attrs):
		return "malformed"
	case s.Instrument == queueLength:
		return "unknown"
	case s.Instrument == instrument.ExporterSourcePanics:
		return "duplicate"
	}
	return ""
}

func (n *naiveSet) read() metrics {
	p := n.readAll(n.sources)
	got := metrics{}
	before := n.live
	n.live, n.added = map[string]shownSeries{}, map[string]shownSeries{}
	for id, q := range p.points {
		n.live[id] = before[id]
		if before[id].series != q.series || !slices.Contains(n.sources, before[id].source) {
			first := slices.IndexFunc(n.sources, func(s *addedSource) bool { return s.hasSeries(q.series) })
			n.live[id] = shownSeries{q.series, n.sources[first]}
		}
		got[seriesText(q.series)] = q.value
	}
	for _, fault := range p.faults {
		n.own["skipped_samples{"+fault+"}"]++
	}
	return got
}

// add reports whether the source is accepted.
func (n *naiveSet) add(s *fakeSource) bool {
	if slices.ContainsFunc(n.sources, func(other *addedSource) bool { return other.fakeSource == s }) {
		return true
	}
	came := &addedSource{s}
	p := &readingResult{points: map[string]point{}}
	for _, q := range n.observe([]*addedSource{came}) {
		p.addPoint(q)
	}
	if len(p.faults) > 0 {
		return false
	}
	rivals, ok := []*addedSource{}, true
	for id, q := range p.points {
		owner := n.owner(id)
		if owner.series == q.series || !slices.Contains(n.sources, owner.source) {
			continue
		}
		if !slices.Contains(rivals, owner.source) {
			rivals = append(rivals, owner.source)
		}
		ok = ok && !owner.source.hasSeries(owner.series)
	}
	n.observe(rivals)
	if !ok {
		return false
	}
	for id, q := range p.points {
		if owner := n.owner(id); owner.series != q.series || !slices.Contains(n.sources, owner.source) {
			n.added[id] = shownSeries{q.series, came}
		}
	}
	n.sources = append(n.sources, came)
	return true
}

// owner returns the series and source that showed the ID last.
func (n *naiveSet) owner(id string) shownSeries {
	if added, ok := n.added[id]; ok {
		return added
	}
	return n.live[id]
}

func (n *naiveSet) remove(s *fakeSource) {
	n.sources = slices.DeleteFunc(n.sources, func(other *addedSource) bool { return other.fakeSource == s })
	maps.DeleteFunc(n.added, func(_ string, one shownSeries) bool { return one.source.fakeSource == s })
}

func (f *fakeSource) hasSeries(s *stat.Series) bool {
	return slices.ContainsFunc(f.points, func(p point) bool { return p.series == s })
}

// FuzzSet applies the same operations to a set and to a naive one: add or remove a source, let it
// panic from now on or show other series of a pool of valid and invalid ones, or read the set.
func FuzzSet(f *testing.F) {
	captureLog(f)
	// a second source named a is refused
	f.Add([]byte{0, 0b1, 1, 4, 5, 0b10, 6, 4})
	// a second a appears later, and the first is removed
	f.Add([]byte{1, 6, 0, 0b1, 4, 5, 0b10, 4, 2, 4})
	// the first is added again after its name was taken
	f.Add([]byte{0, 0b1, 1, 4, 2, 5, 0b10, 6, 1, 4})
	f.Add([]byte{1, 0, 0b11111100, 4, 3, 4, 5, 0b1000, 6, 4, 7})   // every fault, and a panic
	f.Add([]byte{0, 0b1100, 5, 0b1100, 1, 6, 11, 10, 0b100, 4, 4}) // shared series
	f.Fuzz(func(t *testing.T, program []byte) {
		pool := []*stat.Series{
			instrument.BreakerSlowCalls.Series("a", ""), instrument.BreakerSlowCalls.Series("a", ""), instrument.BreakerSlowCalls.Series("b", ""), instrument.LimiterLimit.Series("a"),
			nil,
			{Instrument: instrument.BreakerCalls},
			queueLength.Series(), instrument.ExporterSourcePanics.Series(),
		}
		sources := []*fakeSource{{}, {}, {}}
		set, want := newSet(t), &naiveSet{live: map[string]shownSeries{}, added: map[string]shownSeries{}, own: metrics{}}
		for step := 0; step < len(program); step++ {
			op, source := program[step]%5, sources[program[step]/5%3]
			switch op {
			case 0:
				if step++; step < len(program) {
					source.points = choosePoints(pool, program[step], float64(step))
				}
			case 1:
				require.Equal(t, want.add(source), set.Add(source) == nil, "step %d: added", step)
			case 2:
				set.Remove(source)
				want.remove(source)
			case 3:
				source.broken = "broken"
			case 4:
				got, own := readAll(t, set)
				require.Equal(t, want.read(), got, "step %d", step)
				require.Equal(t, want.own, own, "step %d", step)
			}
		}
	})
}

func choosePoints(pool []*stat.Series, bits byte, value float64) (points []point) {
	for n, s := range pool {
		if bits>>n&1 == 1 {
			points = append(points, point{s, value})
		}
	}
	return points
}
