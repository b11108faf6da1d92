package dashboard

import (
	"crypto/sha256"
	"encoding/base64"
	"math"
	"strings"
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// metric is one series of an entry.
type metric struct {
	series *stat.Series
	value  float64 // in this sampling; used only by the sampling goroutine
	seen   bool    // value was set in this sampling
	last   float64 // the value of the last sample
}

// subject identifies an entry. It is made of the naming attributes, which are the same in all of
// its series.
type subject struct {
	class    class
	kind     string // of the class others: the kind of source
	name     string
	severity string // of alerts
}

// class is the part of the page that shows an entry.
type class uint8

const (
	callsClass     class = iota // breakers, limiters and gates
	alertsClass                 // alert rules
	notifiersClass              // notifiers
	othersClass                 // all other sources
	exporterClass               // the exporter's own metrics, which have no entry
)

// configKind is the kind of the entry of a configuration file, which has no row: it is not a source
// of calls. Its faults are notices.
const configKind = "file"

// keySeparator stands between the name of a group and the key of a member.
const keySeparator = " / "

// keyAttribute is the end of the name of the attribute that has the key of a member.
const keyAttribute = ".group.key"

func subjectOf(s *stat.Series) subject {
	if s.Instrument == instrument.ExporterSourcePanics || s.Instrument == instrument.ExporterSkippedSamples {
		return subject{class: exporterClass}
	}
	if len(s.Values) == 0 {
		return subject{class: othersClass, kind: "metric", name: s.Instrument.Name}
	}
	key, name := s.Instrument.Attrs[0], s.Values[0]
	switch key {
	case "weir.breaker.name", "weir.limiter.name":
		if member := attribute(s, keyAttribute); member != "" {
			name += keySeparator + member
		}
		return subject{class: callsClass, name: name}
	case "weir.alert.rule":
		return subject{class: alertsClass, name: name, severity: s.Values[1]}
	case "weir.notifier.name":
		return subject{class: notifiersClass, name: name}
	}
	if key == "weir.config.file" {
		return subject{class: othersClass, kind: configKind, name: name}
	}
	key = strings.TrimSuffix(key, ".name")
	return subject{class: othersClass, kind: key[strings.LastIndexByte(key, '.')+1:], name: name}
}

// naming returns how many naming attributes the series of the subject have.
func (s subject) naming() int {
	if s.class == alertsClass {
		return 2 // rule and severity
	}
	return 1
}

// attribute returns the value of the attribute whose key has the suffix, or "".
func attribute(s *stat.Series, ending string) string {
	for n, key := range s.Instrument.Attrs {
		if strings.HasSuffix(key, ending) {
			return s.Values[n]
		}
	}
	return ""
}

// id returns a short ID for URLs, the same in every process.
func (s subject) id() string {
	h := sha256.New()
	for _, part := range []string{string('0' + rune(s.class)), s.kind, s.name, s.severity} {
		h.Write([]byte(part + "\xff"))
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:9])
}

// entry is everything known of a subject.
type entry struct {
	subject
	id      string
	metrics []*metric
	began   time.Time // of the first sample

	// If a series appears or disappears, another source counts under this name. The difference to
	// the totals before is then neither a rate nor a change of state.
	callsReset, statesReset bool

	extra   extra
	tracker stateTracker
	history history
	changes []changeEvent // the last ones, oldest first

	troubled       string // see trouble
	troubleSince   time.Time
	troubleAtLeast bool // the trouble may have begun before
	limitRefused   float64
	limitedAt      time.Time // when a limit last refused a call

	fullLast, fullBefore fullCounts // in the last sample, and before the table was full
	fullAt               time.Time  // when they last rose
}

// fullCounts are the totals of what found a full table of keys.
type fullCounts struct{ unguarded, noRoom float64 }

// readMetrics takes the values of the last sampling. It returns false if there are none, because
// the source is gone.
func (e *entry) readMetrics() bool {
	live := e.metrics[:0]
	for _, f := range e.metrics {
		if !f.seen {
			e.markReset(f)
			continue // the read.Set has forgotten the series, and would add it as a new metric
		}
		f.seen, f.last = false, f.value
		live = append(live, f)
	}
	clear(e.metrics[len(live):])
	e.metrics = live
	return len(live) > 0
}

// markReset notes that a series appeared or disappeared since the last sample.
func (e *entry) markReset(f *metric) {
	switch f.series.Instrument {
	case instrument.BreakerCalls, instrument.LimiterRequests:
		e.callsReset = true
	case instrument.BreakerTransitions, instrument.BreakerStateTime, instrument.AlertTransitions:
		e.statesReset = true
	}
}

// advance applies the current sample and returns the change of state, if there was one.
func (e *entry) advance(at time.Time, extras map[subject]extra) (c change, changed bool) {
	if e.began.IsZero() {
		e.began = at
	}
	states := e.allStates()
	now := worstState(states)
	_, value := e.windowCalls()
	if e.class == alertsClass {
		value = roundedNumber(e.gauge(instrument.AlertValue))
	}
	e.extra = extras[e.subject]
	e.history.add(point{
		at: at.UnixMilli(), calls: e.totals(), state: now.name,
		value: toFloat32(value), p50: toFloat32(e.extra.p50), p99: toFloat32(e.extra.p99), reset: e.callsReset,
	})
	e.recordTroubleStart(at)
	if e.statesReset {
		e.tracker = stateTracker{}
	}
	e.callsReset, e.statesReset = false, false
	if now.name == "" {
		return c, false
	}
	return e.tracker.advance(states, now, at)
}

// maxEntryChanges is how many changes of state each entry remembers.
const maxEntryChanges = 32

// storeChange stores a change of state.
func (e *entry) storeChange(c changeEvent) {
	e.changes = append(e.changes, c)
	if old := len(e.changes) - maxEntryChanges; old > 0 {
		e.changes = append(e.changes[:0], e.changes[old:]...)
	}
}

// point holds the values of an entry at one sample. It is small because there are many.
type point struct {
	at    int64 // Unix time in milliseconds
	calls totals
	state string

	value    float32 // the failure rate, or the value of an alert; NaN if unknown
	p50, p99 float32 // seconds; NaN if unknown
	reset    bool    // the counts do not continue those of the previous point
}

// toFloat32 returns the value of a number, or NaN if it is missing.
func toFloat32(n number) float32 {
	if !n.valid {
		return float32(math.NaN())
	}
	return float32(n.value)
}

// rates are in calls per second.
type rates struct{ passed, failed, refused number }

// history is the points of an entry, oldest first.
type history struct {
	points   []point
	interval time.Duration
	maxAge   time.Duration // older points are dropped
}

func (h *history) add(now point) {
	old := 0
	for old < len(h.points) && now.at-h.points[old].at > h.maxAge.Milliseconds() {
		old++
	}
	h.points = append(h.points[old:], now)
}

// ratesAt returns the rates between point n and the one before.
func (h *history) ratesAt(n int) rates {
	if !h.contiguous(n) {
		return rates{}
	}
	return h.ratesBetween(n-1, n)
}

// recentRates returns the rates in the last span, or in the known part of it.
func (h *history) recentRates(span time.Duration) rates {
	last := len(h.points) - 1
	from := h.points[last].at - (span + h.interval/2).Milliseconds()
	first := last
	for h.contiguous(first) && h.points[first-1].at >= from {
		first--
	}
	return h.ratesBetween(first, last)
}

// contiguous reports whether point n continues the counts of the one before, without a pause in the
// sampling.
func (h *history) contiguous(n int) bool {
	return n > 0 && !h.points[n].reset && h.points[n].at-h.points[n-1].at < 3*h.interval.Milliseconds()
}

// ratesBetween returns the rates between two points. They are missing if a total has fallen,
// because another source has taken the name.
func (h *history) ratesBetween(from, to int) rates {
	a, b := h.points[from], h.points[to]
	seconds := float64(b.at-a.at) / 1000
	d := totals{b.calls.passed - a.calls.passed, b.calls.failed - a.calls.failed, b.calls.refused - a.calls.refused}
	if seconds <= 0 || d.passed < 0 || d.failed < 0 || d.refused < 0 {
		return rates{}
	}
	return rates{roundedNumber(d.passed / seconds), roundedNumber(d.failed / seconds), roundedNumber(d.refused / seconds)}
}
