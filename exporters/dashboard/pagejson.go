package dashboard

import (
	"encoding/json"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weir-go/weir/internal/instrument"
)

// The types of this file are encoded as JSON for the page. Times are Unix times in milliseconds,
// durations are in seconds, and rates are shares from 0 to 1 or calls per second. null means
// unknown.

// snapshot is the whole page except the views of single sources.
type snapshot struct {
	Title     string        `json:"title"`
	Seq       uint64        `json:"seq"`
	At        int64         `json:"at"`
	Interval  int64         `json:"interval"` // ms
	Rows      []tableRow    `json:"rows"`
	Alerts    []alertRow    `json:"alerts"`
	Notifiers []notifierRow `json:"notifiers"`
	Changes   []changeRow   `json:"changes"` // the oldest first
	Faults    faults        `json:"faults"`
	// by row: the calls of the last minute, if there were any
	Trails map[string][]callRates `json:"trails"`
}

// delta holds the changes since the previous sample.
type delta struct {
	Seq       uint64        `json:"seq"`
	At        int64         `json:"at"`
	Rows      []tableRow    `json:"rows,omitempty"`
	Alerts    []alertRow    `json:"alerts,omitempty"`
	Notifiers []notifierRow `json:"notifiers,omitempty"`
	Gone      []string      `json:"gone,omitempty"` // IDs of removed rows, alerts and notifiers
	Changes   []changeRow   `json:"changes,omitempty"`
	Faults    faults        `json:"faults"`
}

// callRates are calls per second since the previous sample: those that succeeded or were ignored,
// and those that failed or were refused.
type callRates [2]number

// tableRow is a row of the table of sources.
type tableRow struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Kind        string    `json:"kind"`
	State       string    `json:"state"`
	Since       number    `json:"since"`
	AtMost      bool      `json:"atMost,omitempty"` // the state began at Since or later
	Rate        number    `json:"rate"`
	FailureRate number    `json:"failureRate"`
	Threshold   number    `json:"threshold"` // the failure rate at which the breaker opens
	P50         number    `json:"p50"`
	P99         number    `json:"p99"`
	Refused     number    `json:"refused"`
	CallRates   callRates `json:"callRates"`
	Key         string    `json:"key,omitempty"` // of a group's member
	problem
}

type alertRow struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Severity  string  `json:"severity"`
	State     string  `json:"state"`
	Since     number  `json:"since"`
	AtMost    bool    `json:"atMost,omitempty"`
	Pending   float64 `json:"pending"` // how many alerts of the rule are pending
	Firing    float64 `json:"firing"`
	Value     number  `json:"value"`
	Evaluated number  `json:"evaluated"`
	Failed    float64 `json:"failed"` // evaluations in total
	Threshold number  `json:"threshold"`
	Below     bool    `json:"below,omitempty"` // the value is bad below the threshold
	Unit      string  `json:"unit,omitempty"`  // of the value and the threshold
	// the key of the firing member with the worst value
	Worst    string `json:"worst,omitempty"`
	Keys     int    `json:"keys,omitempty"`     // how many members fire
	NoData   string `json:"noData,omitempty"`   // why the value had no data
	Silenced int    `json:"silenced,omitempty"` // how many firing alerts a silence holds back
	Fault    string `json:"fault,omitempty"`    // why the latest evaluation failed: see friend.Rule
	// when the first evaluation since the last success failed
	FailingSince number `json:"failingSince,omitzero"`
	Late         bool   `json:"late,omitempty"` // it should have been evaluated meanwhile
}

type notifierRow struct {
	ID        string  `json:"id"`
	Name      string  `json:"name"`
	Delivered float64 `json:"delivered"`
	Failed    float64 `json:"failed"` // attempts
	Dropped   float64 `json:"dropped"`
	Pending   float64 `json:"pending"`
	Last      number  `json:"last"` // time of the last delivery
	// when the first attempt since then failed; missing if the latest one succeeded
	FailingSince number `json:"failingSince,omitzero"`
	DroppedAt    number `json:"droppedAt,omitzero"`  // when it last gave up a notification
	LastError    string `json:"lastError,omitempty"` // of the latest attempt that failed
}

type changeRow struct {
	Seq    uint64       `json:"seq"`
	ID     string       `json:"id"`
	Name   string       `json:"name"`
	At     int64        `json:"at"`
	AtMost bool         `json:"atMost,omitempty"` // the state began then or later
	From   string       `json:"from"`
	To     string       `json:"to"`
	By     []stateCount `json:"by,omitempty"`
}

// stateCount says how often a state was entered between two samples.
type stateCount struct {
	State string  `json:"state"`
	Times float64 `json:"times"`
}

// faults counts the failures to read sources.
type faults struct {
	Panics  float64 `json:"panics"`
	Skipped float64 `json:"skipped"`

	Notices []string `json:"notices,omitempty"` // texts of sources, see noticer
}

func (r tableRow) key() string    { return r.ID }
func (r alertRow) key() string    { return r.ID }
func (r notifierRow) key() string { return r.ID }

const (
	rateSpan  = 10 * time.Second // the span of the rates in the table
	trailSpan = time.Minute
	// the longest name in a list, in bytes; the view of a source shows the whole name.
	maxName = 256
)

func (e *entry) tableRow(at time.Time) tableRow {
	rates := e.history.recentRates(rateSpan)
	_, failureRate := e.windowCalls()
	r := tableRow{
		ID: e.id, Name: truncateName(e.name), Kind: e.kindName(), State: e.stateName(rates),
		Since: unixMillis(e.tracker.since), AtMost: e.tracker.atMost,
		Rate: rates.passed, Refused: rates.refused, FailureRate: failureRate,
		Threshold: roundedNumber(e.gauge(instrument.BreakerThresholdFailureRatio)),
		P50:       e.extra.p50, P99: e.extra.p99,
		CallRates: e.history.ratesAt(len(e.history.points) - 1).callRates(),
		problem:   e.problem(at),
	}
	if e.class == othersClass { // it has no calls
		r.Rate, r.Refused, r.CallRates = missingNumber, missingNumber, callRates{}
	}
	r.Key = truncateName(e.extra.key)
	return r
}

func (e *entry) kindName() string {
	if e.class == callsClass {
		return e.callsKind()
	}
	return e.kind
}

// stateName returns the state of the breaker. For a limiter it returns whether the limiter delays
// or refuses calls.
func (e *entry) stateName(rates rates) string {
	switch {
	case e.has(instrument.BreakerCalls) || e.class != callsClass:
		return e.tracker.state
	case rates.refused.value > 0 || e.sum(instrument.LimiterWaiting) > 0:
		return "limiting"
	}
	return "passing"
}

// lateAfter is the shortest time without an evaluation after which a rule is late.
const lateAfter = 15 * time.Second

// isLate reports whether a rule should have been evaluated since it last was, or since the page
// first saw it.
func (e *entry) isLate(at time.Time) bool {
	last, limit := e.began, lateAfter
	if stamp := e.sum(instrument.AlertLastEvaluation); stamp > 0 {
		last = time.UnixMilli(int64(stamp * 1000))
	}
	if rule := e.extra.rule; rule != nil {
		limit = max(limit, 3*rule.Interval)
	}
	return at.Sub(last) > limit
}

func (e *entry) alertRow(at time.Time) alertRow {
	r := alertRow{
		ID: e.id, Name: truncateName(e.name), Severity: truncateName(e.severity), State: e.tracker.state,
		Since: unixMillis(e.tracker.since), AtMost: e.tracker.atMost,
		Pending:   e.sum(instrument.AlertState, "pending"),
		Firing:    e.sum(instrument.AlertState, "firing"),
		Value:     roundedNumber(e.gauge(instrument.AlertValue)),
		Evaluated: secondsToMillis(e.sum(instrument.AlertLastEvaluation)),
		// all except those without an error
		Failed: e.sum(instrument.AlertEvaluations) - e.sum(instrument.AlertEvaluations, ""),
		Late:   e.isLate(at),
	}
	if rule := e.extra.rule; rule != nil {
		r.Threshold, r.Below, r.Unit = exactNumber(rule.Threshold), rule.Below, rule.Unit
		r.Worst, r.Keys, r.NoData, r.Silenced = truncateName(rule.Worst), rule.Keys, rule.NoData, rule.Silenced
		r.Fault, r.FailingSince = rule.Fault, unixMillis(rule.FailingSince)
		if !rule.Since.IsZero() && r.State == "firing" {
			r.Since, r.AtMost = unixMillis(rule.Since), false
		}
	}
	return r
}

func (e *entry) notifierRow() notifierRow {
	r := notifierRow{
		ID: e.id, Name: truncateName(e.name),
		Delivered: e.sum(instrument.NotifierNotifications, "delivered"),
		Failed:    e.sum(instrument.NotifierNotifications, "failed"),
		Dropped:   e.sum(instrument.NotifierNotifications, "dropped"),
		Pending:   e.sum(instrument.NotifierPending),
		Last:      secondsToMillis(e.sum(instrument.NotifierLastSuccess)),
	}
	if n := e.extra.notifier; n != nil {
		r.FailingSince, r.DroppedAt = unixMillis(n.FailingSince), unixMillis(n.DroppedAt)
		r.LastError = truncateText(messageText(strings.TrimPrefix(n.LastError, "alert: not delivered: ")))
	}
	return r
}

// recentCallRates returns the call rates of the last minute, or nil if there were no calls.
func (e *entry) recentCallRates() (list []callRates) {
	points := e.history.points
	from := points[len(points)-1].at - trailSpan.Milliseconds()
	idle := true
	for n, p := range points {
		if p.at > from {
			f := e.history.ratesAt(n).callRates()
			idle = idle && f[0].value+f[1].value == 0
			list = append(list, f)
		}
	}
	if idle {
		return nil
	}
	return list
}

func (f rates) callRates() callRates {
	if !f.passed.valid {
		return callRates{}
	}
	return callRates{roundedNumber(f.passed.value - f.failed.value), roundedNumber(f.failed.value + f.refused.value)}
}

func unixMillis(t time.Time) number {
	if t.IsZero() {
		return missingNumber
	}
	return exactNumber(float64(t.UnixMilli()))
}

// secondsToMillis converts a Unix time from seconds to milliseconds. 0 means never.
func secondsToMillis(stamp float64) number {
	if stamp <= 0 {
		return missingNumber
	}
	return exactNumber(stamp * 1000)
}

// truncateName shortens a name for a list, in the middle, because names that are alike often differ
// at their ends.
func truncateName(name string) string {
	if len(name) <= maxName {
		return name
	}
	end, begin := maxName/2, len(name)-maxName/2
	for !utf8.RuneStart(name[end]) {
		end--
	}
	for begin < len(name) && !utf8.RuneStart(name[begin]) {
		begin++
	}
	return name[:end] + "…" + name[begin:]
}

// number is a value that may be missing, which is null in JSON. Numbers can be compared with ==, to
// find rows that changed.
type number struct {
	value float64
	valid bool
}

// missingNumber is the number without a value.
var missingNumber = number{}

// roundedNumber returns a measured value with four significant digits, so that a smaller difference
// does not count as a change of the row. A value that is not finite is missing.
func roundedNumber(value float64) number {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return missingNumber
	}
	if value == 0 {
		return number{valid: true}
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(value))))
	if rounded := math.Round(value*scale) / scale; !math.IsNaN(rounded) && !math.IsInf(rounded, 0) {
		value = rounded
	}
	return number{value, true}
}

// exactNumber returns the value without rounding. A value that is not finite is missing.
func exactNumber(value float64) number {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return missingNumber
	}
	return number{value, true}
}

// MarshalJSON returns the number or null.
func (n number) MarshalJSON() ([]byte, error) {
	if !n.valid {
		return []byte("null"), nil
	}
	return json.Marshal(n.value)
}

// ratio returns part/whole. It is missing if whole is 0.
func ratio(part, whole float64) number {
	if whole <= 0 {
		return missingNumber
	}
	return roundedNumber(part / whole)
}
