package dashboard

import (
	"cmp"
	"log/slog"
	"strings"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat/view"
)

// detail holds everything that the page knows of one entry, as JSON.
type detail struct {
	ID   string `json:"id"`
	Name string `json:"name"` // not truncated
	// of a member of a group, whose name ends with it
	Key       string    `json:"key,omitempty"`
	Severity  string    `json:"severity,omitempty"`
	Class     string    `json:"class"` // calls, alert, notifier or other
	At        int64     `json:"at"`
	Interval  int64     `json:"interval"` // between samples, in ms
	Length    int64     `json:"length"`   // of the charts, in ms
	Row       *tableRow `json:"row,omitempty"`
	Alert     *alertRow `json:"alert,omitempty"`
	Reopens   number    `json:"reopens"` // seconds until an open breaker becomes half-open
	Waiting   float64   `json:"waiting"`
	Available number    `json:"available"`
	Limit     number    `json:"limit"`
	InFlight  number    `json:"inFlight"`
	MaxFlight number    `json:"maxFlight"` // the highest number of calls in flight
	// why calls are refused: a reason, and further lines of a source of another package
	Why       string         `json:"why,omitempty"`
	Failures  []failureRow   `json:"failures,omitempty"` // the last ones, newest first
	Busiest   []busyRow      `json:"busiest,omitempty"`
	Incidents []incidentRow  `json:"incidents,omitempty"` // oldest first
	Settings  []settingRow   `json:"settings,omitempty"`  // the breaker's configuration in effect
	Changes   []changeRow    `json:"changes"`
	History   historyColumns `json:"history"`
	Metrics   []metricRow    `json:"metrics"`

	config interface{ Settings() []view.Setting } // which addSettings asks
}

// settingRow is a field of a configuration, in words.
type settingRow struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// addSettings adds the configuration. It may call a method of the user, so no lock is held. If that
// panics, there is no configuration.
func (d *detail) addSettings() {
	defer func() {
		if cause := recover(); cause != nil {
			slog.Error("dashboard: the config of a guard panicked", "name", d.Name, "panic", cause)
		}
	}()
	if d.config == nil {
		return
	}
	for _, s := range d.config.Settings() {
		d.Settings = append(d.Settings, settingRow{s.Name, withPlainDurations(s.Value)})
	}
}

// historyColumns has one column per chart line, with one value per sample. Columns that need two
// samples have null after a pause in the sampling.
type historyColumns struct {
	At      []int64  `json:"at"`
	State   []string `json:"state"`
	Passed  []number `json:"passed"` // calls per second, without failed ones
	Failed  []number `json:"failed"`
	Refused []number `json:"refused"`
	Value   []number `json:"value"` // the failure rate, or the value of an alert
	P50     []number `json:"p50"`
	P99     []number `json:"p99"`
}

// failureRow is a failed call, in words.
type failureRow struct {
	At   int64  `json:"at"`
	Text string `json:"text"`
}

// metricRow is one series of the entry.
type metricRow struct {
	Instrument string `json:"instrument"`
	Unit       string `json:"unit"`
	Help       string `json:"help"`
	// key and value, without the naming attributes and the key of a group
	Attrs [][]string `json:"attrs"`
	Value number     `json:"value"`
}

// detail returns the details of the entry with the ID, if there is one.
func (m *model) detail(id string) (*detail, bool) {
	l, ok := m.byID[id]
	if !ok {
		return nil, false
	}
	d := &detail{
		ID: l.id, Name: l.name, Severity: l.severity, Class: classNames[l.class],
		At: m.published.at.UnixMilli(), Interval: m.config.Interval.Milliseconds(), Length: m.config.History.Milliseconds(),
		Reopens:   roundedNumber(l.gauge(instrument.BreakerOpenRemaining)),
		Waiting:   l.sum(instrument.LimiterWaiting),
		Available: exactNumber(l.gauge(instrument.LimiterAvailable)),
		Limit:     exactNumber(l.gauge(instrument.LimiterLimit)),
		InFlight:  exactNumber(l.gauge(instrument.InFlightCalls)),
		MaxFlight: exactNumber(l.gauge(instrument.InFlightLimit)),
		Why:       l.extra.why, Busiest: l.extra.busiestRows(), Changes: []changeRow{}, History: l.history.columns(), Metrics: []metricRow{},
	}
	if l.class == alertsClass {
		r := l.alertRow(m.published.at)
		d.Alert = &r
	} else if l.class != notifiersClass {
		r := l.tableRow(m.published.at)
		d.Row = &r
	}
	for _, e := range l.changes {
		d.Changes = append(d.Changes, e.changeRow())
	}
	if s := l.extra.status; s != nil {
		d.Incidents, d.config = incidentRows(s), s.Config
		if s.Reason != "" {
			for _, f := range s.Failures {
				d.Failures = append(d.Failures, failureRow{f.Time.UnixMilli(), failureText(f)})
			}
		}
	}
	for _, f := range l.metrics {
		d.Metrics = append(d.Metrics, f.metricRow(l.subject))
		d.Key = cmp.Or(d.Key, attribute(f.series, keyAttribute))
	}
	return d, true
}

var classNames = [...]string{callsClass: "calls", alertsClass: "alert", notifiersClass: "notifier", othersClass: "other"}

func (h *history) columns() historyColumns {
	n := len(h.points)
	c := historyColumns{
		At: make([]int64, n), State: make([]string, n), Passed: make([]number, n), Failed: make([]number, n),
		Refused: make([]number, n), Value: make([]number, n), P50: make([]number, n), P99: make([]number, n),
	}
	for i, one := range h.points {
		c.At[i], c.State[i] = one.at, one.state
		c.Value[i], c.P50[i], c.P99[i] = roundedNumber(float64(one.value)), roundedNumber(float64(one.p50)), roundedNumber(float64(one.p99))
		f := h.ratesAt(i)
		c.Failed[i], c.Refused[i] = f.failed, f.refused
		if f.passed.valid {
			c.Passed[i] = roundedNumber(f.passed.value - f.failed.value)
		}
	}
	return c
}

func (f *metric) metricRow(of subject) metricRow {
	i := f.series.Instrument
	r := metricRow{Instrument: i.Name, Unit: i.Unit, Help: i.Help, Attrs: [][]string{}, Value: exactNumber(f.last)}
	for n := of.naming(); n < len(i.Attrs); n++ {
		if value := f.series.Values[n]; value != "" && !strings.HasSuffix(i.Attrs[n], keyAttribute) {
			r.Attrs = append(r.Attrs, []string{i.Attrs[n], value})
		}
	}
	return r
}
