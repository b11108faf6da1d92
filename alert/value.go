package alert

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weir-go/weir/window"
)

// Value is a number that a rule watches. It holds no state, so it may be part of several rules:
// each monitor takes samples of its own. The sources and functions of a value are called at every
// evaluation, one at a time and without a lock held. The zero Value is not valid.
type Value struct {
	name              string  // describes the number in a summary
	low, high         float64 // the range of the number
	counts, countsBad bool    // whether measurement.Calls and measurement.Bad are set
	errs              []error // the faults of the arguments
	each              bool    // whether the value has members

	// start returns a new sampler. Calls made before its first sample are not counted.
	start func() sampler
	// startGroup is start for a value with members. It also returns the group, which keeps what the
	// previous group knew if both groups have members of the same kind.
	startGroup func(before any) (s sampler, group any)
	// Values with equal ids can share a sampler: see Monitor.Reconfigure. The id is nil if the
	// value has to start again, or if its sampler remembers nothing.
	id any
}

// valueID is Value.id of a value that remembers samples.
type valueID struct {
	name  string // with the spans
	of    any    // the source
	param float64
}

// newValueID returns an id, or nil if sources like this cannot be compared.
func newValueID(name string, of any, param float64) any {
	if !reflect.ValueOf(of).Comparable() {
		return nil
	}
	return valueID{name, of, param}
}

// sampling is a value that is being sampled.
type sampling struct {
	sample sampler
	id     any // Value.id
	group  any // of a value with members
}

// beginSampling begins to sample the value. It continues the previous sampling if that is of an
// equal value.
func (v Value) beginSampling(before *sampling) *sampling {
	if before != nil && v.id != nil && v.id == before.id {
		return before
	}
	if v.startGroup == nil {
		return &sampling{sample: v.start(), id: v.id}
	}
	s := &sampling{}
	if before != nil {
		s.group = before.group
	}
	s.sample, s.group = v.startGroup(s.group)
	return s
}

// measurement is a value at one moment.
type measurement struct {
	Value float64 // the number that the rule judges
	Calls int64   // how many calls Value is computed from
	Bad   int64   // how many of them were bad
	OK    bool    // false: there is no data, and Value and Bad are not set
	why   missing // why there is no data, unless the value is missing

	partial bool // Value is a sum over less than its span, so the true value may be larger
}

// reading is the measurement of one member. A value without members has one reading, without a key.
type reading struct {
	key       string // the label "key"
	valueName string
	measured  measurement
}

// sampler reads each member once and yields the readings.
type sampler func(t time.Time, yield func(reading)) outcome

// sampleOne returns the sampler of a value without members.
func sampleOne(name string, measure func(t time.Time) measurement) sampler {
	return func(t time.Time, yield func(reading)) outcome {
		yield(reading{valueName: name, measured: measure(t)})
		return outcome{}
	}
}

// Gauge is the number that read returns. NaN means that there is no data. An infinity also means
// that there is no data, and counts as an error of the rule.
func Gauge(read func() float64) Value {
	return newGauge("gauge", read == nil, func(time.Time) measurement {
		v := read()
		return measurement{Value: v, OK: !math.IsNaN(v)}
	})
}

// Bool is 1 while holds returns true, and 0 otherwise.
//
// For an alert about a breaker or a gate, pass the method Tripped: Bool(payments.Tripped). It is 1
// from the moment the breaker opens, automatically or by hand, until it has closed again. It stays
// 1 while the breaker is half-open, so that a rule with a For fires once per outage and resolves
// once, however often the breaker probes the service in between. A breaker that is disabled, forced
// closed or in shadow mode is not tripped. To show the last failures in every message, add them to
// the summary:
//
//	Describe: func(a Alert) string { return a.Summary + "\n" + payments.Explain() }
func Bool(holds func() bool) Value {
	v := newGauge("boolean", holds == nil, func(time.Time) measurement {
		m := measurement{OK: true}
		if holds() {
			m.Value = 1
		}
		return m
	})
	v.low, v.high = 0, 1
	return v
}

func newGauge(name string, isNil bool, measure func(t time.Time) measurement) Value {
	v := Value{name: name, low: math.Inf(-1), high: math.Inf(1)}
	if isNil {
		v.errs = []error{errors.New("the function is nil")}
	}
	v.start = func() sampler { return sampleOne(name, measure) }
	return v
}

// Counted is a source that counts its calls, such as a breaker, a gate or a window. Totals returns
// the lifetime counts. It is called at every evaluation and must be safe for concurrent use.
type Counted interface {
	Totals() window.Totals
}

// FailureRate is the share of failed calls among those of the last span, from 0 to 1. Calls refused
// by a breaker count as failed, so that an open breaker does not silence the alert about the outage
// that opened it. Without calls there is no data.
func FailureRate(of Counted, span time.Duration) Value {
	return shareOfCalls("failure rate", of, span, func(c window.Counts) (bad, calls int64) {
		return c.Failures + c.Refused, withRefused(c)
	})
}

// SlowRate is the share of slow calls among those that finished in the last span, from 0 to 1.
// Without finished calls there is no data.
func SlowRate(of Counted, span time.Duration) Value {
	return shareOfCalls("slow rate", of, span, func(c window.Counts) (bad, calls int64) { return c.Slow, c.Calls() })
}

// Rate is the number of calls per second in the last span, including those refused by a breaker.
// There is no data before the second evaluation. Until the monitor has run for a whole span, Rate
// is taken over the time since the first evaluation.
func Rate(of Counted, span time.Duration) Value {
	v := overSpan("calls per second", of, span, func(v view, t time.Time) measurement {
		calls := withRefused(v.CountsAt(t))
		seen := v.coverage(t) * span.Seconds()
		return measurement{Value: float64(calls) / seen, Calls: calls, OK: seen > 0, why: tooEarly}
	})
	v.counts = true
	return v
}

// withRefused returns the number of calls including the refused ones, which Counts.Calls omits.
func withRefused(c window.Counts) int64 { return c.Calls() + c.Refused }

func shareOfCalls(name string, of Counted, span time.Duration, split func(window.Counts) (bad, calls int64)) Value {
	v := overSpan(name, of, span, func(v view, t time.Time) measurement {
		bad, calls := split(v.CountsAt(t))
		return measurement{Value: float64(bad) / float64(calls), Calls: calls, Bad: bad, OK: calls > 0, why: noCalls}
	})
	v.counts, v.countsBad, v.high = true, true, 1
	return v
}

// overSpan returns a value that is not negative and is computed from the calls in the last span.
func overSpan(name string, of Counted, span time.Duration, measure func(view, time.Time) measurement) Value {
	v := Value{name: name + " over " + shortText(span), high: math.Inf(1)}
	if of == nil {
		v.errs = append(v.errs, errors.New("the source is nil"))
	}
	v.errs = append(v.errs, spanErrors(span)...)
	v.id = newValueID(v.name, of, 0)
	v.start = func() sampler {
		views := newViews(of, span)
		return sampleOne(v.name, func(t time.Time) measurement {
			return measure(views.sample(t)[0], t)
		})
	}
	return v
}

// Quantile is the latency in seconds that the share q of the calls in the last span did not exceed.
// For example, with q = 0.99 one call in a hundred took longer. It is within 9 % of the true
// latency, and the span is exact to a twelfth of its length. Without calls there is no data.
//
// A breaker, also that of a gate, and a window have the method LifetimeLatency. They return data if
// they are configured to keep latencies. LifetimeLatency is called at every evaluation and must be
// safe for concurrent use.
func Quantile(of interface{ LifetimeLatency() window.Latency }, q float64, span time.Duration) Value {
	v := Value{name: fmt.Sprintf("latency quantile %v over %s", q, shortText(span)), high: math.Inf(1), counts: true}
	if of == nil {
		v.errs = append(v.errs, errors.New("the source is nil"))
	}
	if math.IsNaN(q) || q < 0 || q > 1 {
		v.errs = append(v.errs, fmt.Errorf("the quantile is %v, must lie between 0 and 1", q))
	}
	v.errs = append(v.errs, spanErrors(span)...)
	v.id = newValueID(v.name, of, q)
	v.start = func() sampler {
		recent := latencyWindow{width: (span + latencyParts - 1) / latencyParts}
		return sampleOne(v.name, func(t time.Time) measurement {
			latency := recent.sample(t, of.LifetimeLatency())
			calls := latency.Count()
			return measurement{Value: latency.Quantile(q).Seconds(), Calls: calls, OK: calls > 0, why: noCalls}
		})
	}
	return v
}

// latencyParts is the number of parts of the window of a quantile. Each part with calls keeps a
// histogram of 2 kB.
const latencyParts = 12

// latencyWindow is a moving window over the lifetime histogram of a source. For each recent part,
// it keeps the counts at the moment when the part began.
type latencyWindow struct {
	width   time.Duration  // of a part
	epoch   time.Time      // of the first sample
	last    window.Latency // the latest sample
	counted window.Latency // since the first sample
	newest  int64          // the part of the latest sample
	starts  []*partStart   // the first is the start of the window
}

// partStart holds the counts at the moment when a part began.
type partStart struct {
	part    int64
	counted window.Latency
}

// sample returns the calls in the window that ends at t. total is the lifetime histogram at t.
func (l *latencyWindow) sample(t time.Time, total window.Latency) window.Latency {
	if l.epoch.IsZero() {
		l.epoch, l.starts, l.last = t, []*partStart{{}}, total
	}
	if part := int64(t.Sub(l.epoch) / l.width); part > l.newest {
		l.advance(part)
	}
	l.counted = l.counted.Plus(latencyIncrease(total, l.last))
	l.last = total
	return minus(l.counted, l.starts[0].counted)
}

// advance begins a part. All parts that were skipped since the latest sample began with the same
// counts, so they share one partStart. A part that began with the same counts as the previous part
// needs no partStart of its own.
func (l *latencyWindow) advance(part int64) {
	if l.starts[len(l.starts)-1].counted.Counts != l.counted.Counts {
		l.starts = append(l.starts, &partStart{l.newest + 1, l.counted})
	}
	l.newest = part
	expired := 0
	for expired+1 < len(l.starts) && l.starts[expired+1].part <= part-latencyParts+1 {
		expired++
	}
	l.starts = slices.Delete(l.starts, 0, expired)
}

// latencyIncrease returns what was counted between two readings of a histogram. If a count has
// fallen, the histogram was reset, and everything in it is new.
func latencyIncrease(now, old window.Latency) window.Latency {
	for i, n := range old.Counts {
		if now.Counts[i] < n {
			return now
		}
	}
	return minus(now, old)
}

// minus subtracts the counts, which are all that a quantile is computed from.
func minus(now, old window.Latency) window.Latency {
	for i, n := range old.Counts {
		now.Counts[i] -= n
	}
	return now
}

// viewConfig divides a span into 60 buckets, or into more if a bucket would otherwise be longer
// than a window allows.
func viewConfig(span time.Duration) window.Config {
	const longestBucket = time.Hour
	hours := int((span + longestBucket - 1) / longestBucket)
	return window.Config{Span: span, Buckets: max(60, hours)}
}

// spanErrors returns the faults of the spans.
func spanErrors(spans ...time.Duration) (errs []error) {
	for _, span := range spans {
		if span <= 0 {
			errs = append(errs, fmt.Errorf("the span is %v, must be positive", span))
		} else if err := viewConfig(span).Validate(); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// view is a moving window over a span.
type view struct {
	*window.View
	span  time.Duration
	first time.Time // when the first sample was taken
}

// coverage returns the share of the span since the first sample, from 0 to 1.
func (v view) coverage(t time.Time) float64 {
	return min(max(float64(t.Sub(v.first))/float64(v.span), 0), 1)
}

// views are moving windows over one source, one per span.
type views struct {
	of    Counted
	spans []time.Duration
	views []view
}

func newViews(of Counted, spans ...time.Duration) *views { return &views{of: of, spans: spans} }

// sample reads the source once and returns the updated views. It makes the views at the first
// sample, because a replay may begin at any time.
func (v *views) sample(t time.Time) []view {
	totals := v.of.Totals()
	for _, span := range v.spans[len(v.views):] {
		v.views = append(v.views, view{window.NewViewAt(viewConfig(span), t), span, t})
	}
	for _, one := range v.views {
		one.SampleAt(t, totals)
	}
	return v.views
}

// shortText returns the span without trailing zeros: 5m, not 5m0s.
func shortText(span time.Duration) string {
	text := span.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
