package dashboard

import (
	"context"
	"sync"
	"time"

	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
)

// sampler reads the sources for all requests. The first request that finds that a sample is due
// reads the sources on its own goroutine. Other requests wait for this sample, or until their
// context is done. A source that blocks delays new samples and nothing else.
type sampler struct {
	interval time.Duration
	set      *read.Set[*metric]
	extras   *extras
	model    *model
	epoch    time.Time

	mu           sync.Mutex
	sampling     bool          // a request is reading the sources, without holding mu
	waiting      int           // requests that wait for a sampling or until one is due
	next         chan struct{} // closed when a sampling ends; nil if no request waits
	last         *update
	snapshotJSON []byte        // the snapshot as of last, or nil until it is needed
	began        time.Duration // when the sampling for last began, since epoch
}

func newSampler(c Config, sources []stat.Source) (*sampler, error) {
	s := &sampler{
		interval: c.Interval, extras: &extras{}, model: newModel(c), epoch: time.Now(), last: &update{},
	}
	var err error
	s.set, err = read.New(s.model.newMetric, s.extras.wrapSources(sources)...)
	return s, err
}

func (s *sampler) add(sources []stat.Source) error {
	return s.set.Add(s.extras.wrapSources(sources)...)
}

func (s *sampler) remove(sources []stat.Source) { s.set.Remove(s.extras.wrapSources(sources)...) }

// latest returns an update that is not older than the interval.
func (s *sampler) latest(ctx context.Context) (*update, error) {
	s.mu.Lock()
	last, due := s.last, s.untilDue()
	s.mu.Unlock()
	if last.seq > 0 && due > 0 {
		return last, nil
	}
	return s.nextAfter(ctx, last.seq)
}

// nextAfter returns the first update after number seq, as soon as it is due. Its only error is that
// of ctx.
func (s *sampler) nextAfter(ctx context.Context, seq uint64) (*update, error) {
	for {
		s.mu.Lock()
		last, due := s.last, s.untilDue()
		if last.seq > seq {
			s.mu.Unlock()
			return last, nil
		}
		if due <= 0 && !s.sampling {
			s.sampling = true
			s.mu.Unlock()
			s.sample()
			continue
		}
		if s.waiting++; s.next == nil {
			s.next = make(chan struct{})
		}
		next := s.next
		s.mu.Unlock()

		err := wait(ctx, next, due)
		s.mu.Lock()
		if s.waiting--; s.waiting == 0 {
			s.next = nil
		}
		s.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
}

// untilDue returns how long it is until the next sample is due. A sample of a later time is one of
// another clock, such as that of a testing/synctest bubble, so the next one is due.
func (s *sampler) untilDue() time.Duration {
	due := s.began + s.interval - time.Since(s.epoch)
	if s.last.seq == 0 || due > s.interval {
		return 0
	}
	return due
}

// wait waits until next is closed, or until left has passed if it is positive.
func wait(ctx context.Context, next <-chan struct{}, left time.Duration) error {
	var over <-chan time.Time
	if left > 0 {
		timer := time.NewTimer(left)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-next:
	case <-over:
	}
	return nil
}

// sample reads the sources and publishes an update. The caller has set sampling.
func (s *sampler) sample() {
	defer s.endSampling()
	began := time.Since(s.epoch)
	s.extras.start()
	for f, value := range s.set.Observe {
		s.model.setValue(f, value)
	}
	extras, notices := s.extras.finish()

	s.mu.Lock()
	defer s.mu.Unlock()
	s.model.notices = notices
	s.last = s.model.apply(s.epoch.Add(began), extras)
	s.snapshotJSON = nil
	s.began = began
}

func (s *sampler) endSampling() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sampling = false
	if s.next != nil {
		close(s.next)
		s.next = nil
	}
}

// snapshot returns everything known, and the number of its update.
func (s *sampler) snapshot() (seq uint64, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snapshotJSON == nil {
		s.snapshotJSON = s.model.snapshot()
	}
	return s.last.seq, s.snapshotJSON
}

// detail returns everything known of one entry.
func (s *sampler) detail(id string) (*detail, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model.detail(id)
}

// update is the encoded difference between one sample and the previous one. It is immutable.
type update struct {
	seq   uint64
	delta []byte
}

// publishedContent is the content of the last update, for comparison with the next.
type publishedContent struct {
	at        time.Time
	rows      []tableRow
	alerts    []alertRow
	notifiers []notifierRow
	faults    faults
}

// newUpdate returns what changed since the last update.
func (m *model) newUpdate(at time.Time) *update {
	next := publishedContent{at: at, faults: m.countFaults()}
	for _, c := range []class{callsClass, othersClass} {
		for _, entry := range m.entriesOf(c) {
			if entry.kind != configKind {
				next.rows = append(next.rows, entry.tableRow(at))
			}
		}
	}
	for _, entry := range m.entriesOf(alertsClass) {
		next.alerts = append(next.alerts, entry.alertRow(at))
	}
	for _, entry := range m.entriesOf(notifiersClass) {
		next.notifiers = append(next.notifiers, entry.notifierRow())
	}

	d := delta{Seq: m.seq, At: at.UnixMilli(), Faults: next.faults}
	d.Rows, d.Gone = diff(m.published.rows, next.rows, d.Gone)
	d.Alerts, d.Gone = diff(m.published.alerts, next.alerts, d.Gone)
	d.Notifiers, d.Gone = diff(m.published.notifiers, next.notifiers, d.Gone)
	for _, e := range m.changes {
		if e.seq == m.seq {
			d.Changes = append(d.Changes, e.changeRow())
		}
	}
	m.published = next
	return &update{seq: m.seq, delta: encode(d)}
}

// diff returns the rows that are new or changed, and appends the keys of removed rows to gone.
func diff[T interface {
	comparable
	key() string
}](old, now []T, gone []string) (changed []T, _ []string) {
	before := make(map[string]T, len(old))
	for _, r := range old {
		before[r.key()] = r
	}
	for _, r := range now {
		if was, ok := before[r.key()]; !ok || was != r {
			changed = append(changed, r)
		}
		delete(before, r.key())
	}
	for key := range before {
		gone = append(gone, key)
	}
	return changed, gone
}

// snapshot returns the page as of the last update.
func (m *model) snapshot() []byte {
	s := snapshot{
		Title: m.config.Title, Seq: m.seq, At: m.published.at.UnixMilli(), Interval: m.config.Interval.Milliseconds(),
		Rows: nonNil(m.published.rows), Alerts: nonNil(m.published.alerts), Notifiers: nonNil(m.published.notifiers),
		Changes: []changeRow{}, Faults: m.published.faults, Trails: map[string][]callRates{},
	}
	for _, e := range m.changes {
		s.Changes = append(s.Changes, e.changeRow())
	}
	for _, entry := range m.entriesOf(callsClass) {
		if trail := entry.recentCallRates(); trail != nil {
			s.Trails[entry.id] = trail
		}
	}
	return encode(s)
}

// nonNil returns an empty list for nil, which JSON encodes as null.
func nonNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func (m *model) countFaults() (f faults) {
	f.Notices = m.notices
	for _, one := range m.faults.metrics {
		if len(one.series.Values) == 0 {
			f.Panics += one.last
		} else {
			f.Skipped += one.last
		}
	}
	return f
}
