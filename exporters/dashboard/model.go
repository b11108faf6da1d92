package dashboard

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/view"
)

// maxChanges is how many changes of state the overview shows. Each entry remembers its own.
const maxChanges = 100

// model is everything the page knows. newMetric and setValue are called by the sampling goroutine;
// all other methods are called with the sampler's lock held.
type model struct {
	config Config
	added  []*metric // metrics that are new in this sampling

	entries   map[subject]*entry
	byID      map[string]*entry
	faults    entry            // the exporter's own metrics
	notices   []string         // of sources, in the last sampling
	changes   []changeEvent    // oldest first
	seq       uint64           // of the last update
	published publishedContent // in the last update
}

// changeEvent is a change of the state of an entry, which may no longer exist.
type changeEvent struct {
	change
	seq     uint64 // of the update with the change
	subject subject
	id      string
}

func (e changeEvent) changeRow() changeRow {
	r := changeRow{
		Seq: e.seq, ID: e.id, Name: truncateName(e.subject.name), At: e.at.UnixMilli(), AtMost: e.atMost, From: e.from, To: e.to,
	}
	for _, s := range e.by {
		r.By = append(r.By, stateCount{s.name, s.entered})
	}
	return r
}

func newModel(c Config) *model {
	return &model{config: c, entries: map[subject]*entry{}, byID: map[string]*entry{}}
}

// newMetric returns the metric of a new series.
func (m *model) newMetric(s *stat.Series) *metric {
	f := &metric{series: s}
	m.added = append(m.added, f)
	return f
}

// setValue sets the value of a metric in this sampling.
func (m *model) setValue(f *metric, value float64) { f.value, f.seen = value, true }

// apply ends a sampling that began at a time, and returns the next update.
func (m *model) apply(at time.Time, extras map[subject]extra) *update {
	for _, f := range m.added {
		e := m.entry(subjectOf(f.series))
		e.metrics = append(e.metrics, f)
		e.markReset(f)
	}
	clear(m.added)
	m.added = m.added[:0]
	m.faults.readMetrics()

	m.seq++
	for subject, e := range m.entries {
		if !e.readMetrics() {
			delete(m.entries, subject)
			delete(m.byID, e.id)
			continue
		}
		if c, changed := e.advance(at, extras); changed {
			event := changeEvent{c, m.seq, subject, e.id}
			m.changes = append(m.changes, event)
			e.storeChange(event)
		}
	}
	m.limitChanges()
	return m.newUpdate(at)
}

// entry returns the entry of a subject, which it creates if necessary.
func (m *model) entry(s subject) *entry {
	if s.class == exporterClass {
		return &m.faults
	}
	e, ok := m.entries[s]
	if !ok {
		e = &entry{subject: s, id: s.id(), history: history{interval: m.config.Interval, maxAge: m.config.History}}
		m.entries[s] = e
		m.byID[e.id] = e
	}
	return e
}

// limitChanges sorts the changes and removes the oldest.
func (m *model) limitChanges() {
	slices.SortStableFunc(m.changes, func(a, c changeEvent) int {
		return cmp.Or(a.at.Compare(c.at), strings.Compare(a.subject.name, c.subject.name))
	})
	if old := len(m.changes) - maxChanges; old > 0 {
		m.changes = slices.Delete(m.changes, 0, old)
	}
}

// entriesOf returns the entries of a class, sorted by name.
func (m *model) entriesOf(c class) []*entry {
	var list []*entry
	for _, e := range m.entries {
		if e.class == c {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *entry) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.kind, b.kind), strings.Compare(a.severity, b.severity))
	})
	return list
}

// incidentRow is the time from an opening of a breaker until it has closed.
type incidentRow struct {
	Began    int64  `json:"began"`
	Ended    number `json:"ended"` // null while it lasts
	Openings int    `json:"openings"`
	Cause    string `json:"cause"`
}

func incidentRows(s *view.Status) (rows []incidentRow) {
	for _, i := range s.Incidents {
		rows = append(rows, incidentRow{Began: i.Began.UnixMilli(), Ended: unixMillis(i.Ended), Openings: i.Openings, Cause: withPlainDurations(i.Cause)})
	}
	return rows
}

// maxBusiest is how many refused keys the page shows of a limiter.
const maxBusiest = 10

// busiestSource is a source that reports which keys it refuses most often, such as a limiter.Group,
// a weir.Group or a weirhttp.Limit.
type busiestSource interface {
	stat.Source
	Busiest(n int) []limiter.BusyKey
}

// busyRow is a refused key, as JSON.
type busyRow struct {
	Key     string `json:"key"`
	AtLeast int64  `json:"atLeast"` // refusals in the last 5 to 10 minutes
	AtMost  int64  `json:"atMost"`
}

// recordBusiest records the keys that a source refuses most often, by the names of its limiters.
func (x *extras) recordBusiest(source busiestSource) {
	rows := map[string][]busyRow{}
	for _, k := range source.Busiest(maxBusiest) {
		rows[k.Limiter] = append(rows[k.Limiter], busyRow{Key: truncateName(k.Key), AtLeast: k.AtLeast, AtMost: k.AtMost})
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for name, list := range rows {
		s := subject{class: callsClass, name: name}
		if e := x.recorded[s]; x.recorded != nil {
			e.busiest = list
			x.recorded[s] = e
		}
	}
}

// busiestRows returns the busiest keys of the limiter, or nil.
func (e extra) busiestRows() []busyRow {
	return e.busiest[:min(len(e.busiest), maxBusiest)]
}
