package dashboard

import (
	"time"
	"unicode/utf8"
)

// The types of this file are what the page is told, in JSON. Times are Unix times
// in milliseconds, spans seconds, rates 0..1 or calls a second; null is not known.

// snapshot is all of the page but the views of single sources.
type snapshot struct {
	Title    string              `json:"title"`
	Seq      uint64              `json:"seq"`
	At       int64               `json:"at"`
	Interval int64               `json:"interval"` // ms
	Rows     []row               `json:"rows"`
	Alerts   []alertRow          `json:"alerts"`
	Sinks    []sinkRow           `json:"notifiers"`
	Changes  []changeRow         `json:"changes"` // the oldest first
	Faults   faults              `json:"faults"`
	Trails   map[string][]pulses `json:"trails"` // by row: calls over the last minute, where there were any
}

// delta is what has changed since the sample before.
type delta struct {
	Seq     uint64      `json:"seq"`
	At      int64       `json:"at"`
	Rows    []row       `json:"rows,omitempty"`
	Alerts  []alertRow  `json:"alerts,omitempty"`
	Sinks   []sinkRow   `json:"notifiers,omitempty"`
	Gone    []string    `json:"gone,omitempty"` // of all three
	Changes []changeRow `json:"changes,omitempty"`
	Faults  faults      `json:"faults"`
}

// pulses are calls a second since the sample before: those let through that did
// not fail, and those that failed or were refused.
type pulses [2]number

// row is a line of the table.
type row struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Kind        string `json:"kind"`
	State       string `json:"state"`
	Since       number `json:"since"`
	AtMost      bool   `json:"atMost,omitempty"` // it began at Since or later
	Rate        number `json:"rate"`
	FailureRate number `json:"failureRate"`
	Threshold   number `json:"threshold"` // the failure rate at which the breaker opens
	P50         number `json:"p50"`
	P99         number `json:"p99"`
	Refused     number `json:"refused"`
	Pulses      pulses `json:"pulses"`
}

type alertRow struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Severity  string  `json:"severity"`
	State     string  `json:"state"`
	Since     number  `json:"since"`
	AtMost    bool    `json:"atMost,omitempty"`
	Pending   float64 `json:"pending"` // alerts of the rule
	Firing    float64 `json:"firing"`
	Value     number  `json:"value"`
	Evaluated number  `json:"evaluated"`
	Failed    float64 `json:"failed"` // evaluations, ever
}

type sinkRow struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Delivered float64 `json:"delivered"`
	Failed    float64 `json:"failed"` // attempts
	Dropped   float64 `json:"dropped"`
	Pending   float64 `json:"pending"`
	Last      number  `json:"last"` // delivery
}

type changeRow struct {
	Seq    uint64  `json:"seq"`
	ID     string  `json:"id"`
	Name   string  `json:"name"`
	At     int64   `json:"at"`
	AtMost bool    `json:"atMost,omitempty"` // it was then or later
	From   string  `json:"from"`
	To     string  `json:"to"`
	By     []visit `json:"by,omitempty"`
}

// visit is a state on the way from one to another.
type visit struct {
	State string  `json:"state"`
	Times float64 `json:"times"`
}

// faults are the page's troubles with its sources.
type faults struct {
	Panics  float64 `json:"panics"`
	Skipped float64 `json:"skipped"`
}

func (r row) key() string      { return r.ID }
func (r alertRow) key() string { return r.ID }
func (r sinkRow) key() string  { return r.ID }

const (
	rateSpan  = 10 * time.Second // of the rates in the table
	trailSpan = time.Minute
	maxName   = 256 // what a list shows of a name; the view of the source shows all
)

func (l *line) row() row {
	rates := l.past.recent(rateSpan)
	return row{
		ID: l.id, Name: clip(l.name), Kind: l.kindName(), State: l.stateName(rates),
		Since: unix(l.track.since), AtMost: l.track.atMost,
		Rate: rates.passed, FailureRate: l.now.failureRate(), Threshold: l.now.threshold, Refused: rates.refused,
		P50: l.times.p50, P99: l.times.p99,
		Pulses: l.past.flow(len(l.past.points) - 1).pulses(),
	}
}

func (l *line) kindName() string {
	if l.class == calls {
		return l.now.kind()
	}
	return l.kind
}

// stateName returns the state of the breaker. A limiter has none; but it is worth
// knowing whether it holds anybody back.
func (l *line) stateName(rates flow) string {
	switch {
	case l.now.breaker || l.class != calls:
		return l.track.state
	case rates.refused.value > 0 || l.now.waiting > 0:
		return "limiting"
	}
	return "passing"
}

func (l *line) alertRow() alertRow {
	r := alertRow{
		ID: l.id, Name: clip(l.name), Severity: clip(l.severity), State: l.track.state,
		Since: unix(l.track.since), AtMost: l.track.atMost,
		Value: l.now.value, Evaluated: milliseconds(l.now.evaluated), Failed: l.now.failed,
	}
	for _, s := range l.now.stages {
		switch s.name {
		case "pending":
			r.Pending = s.is
		case "firing":
			r.Firing = s.is
		}
	}
	return r
}

func (l *line) sinkRow() sinkRow {
	return sinkRow{
		ID: l.id, Name: clip(l.name), Delivered: l.now.delivered, Failed: l.now.failures,
		Dropped: l.now.lost, Pending: l.now.pending, Last: milliseconds(l.now.delivery),
	}
}

// trail returns the pulses of the last minute, nil if there were none.
func (l *line) trail() (list []pulses) {
	points := l.past.points
	from := points[len(points)-1].at - trailSpan.Milliseconds()
	quiet := true
	for n, p := range points {
		if p.at > from {
			f := l.past.flow(n).pulses()
			quiet = quiet && f[0].value+f[1].value == 0
			list = append(list, f)
		}
	}
	if quiet {
		return nil
	}
	return list
}

func (f flow) pulses() pulses {
	if !f.passed.there {
		return pulses{}
	}
	return pulses{some(f.passed.value - f.failed.value), some(f.failed.value + f.refused.value)}
}

func unix(t time.Time) number {
	if t.IsZero() {
		return none
	}
	return exact(float64(t.UnixMilli()))
}

// milliseconds makes of a Unix time in seconds, 0 for never, one in milliseconds.
func milliseconds(stamp float64) number {
	if stamp <= 0 {
		return none
	}
	return exact(stamp * 1000)
}

// clip shortens a name for a list.
func clip(name string) string {
	if len(name) <= maxName {
		return name
	}
	end := maxName
	for !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end] + "…"
}
