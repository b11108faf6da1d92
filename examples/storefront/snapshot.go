package main

import (
	"time"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

// snapshot holds all values that a view shows at one moment.
type snapshot struct {
	at        time.Duration // since the start
	run       time.Duration
	phase     phase
	breaker   breaker.State
	alert     alertState
	perSecond float64 // customers per second
	failing   float64 // the share of payments that failed or were refused by the breaker
	sum       summary
	events    []event // in order of time
	past      history
	exportsTo string
	metrics   string // the URL for Prometheus
	live      string // the URL of the live page
	config    string // the path of the configuration file
}

// sampler takes snapshots.
type sampler struct {
	*storefront
	recent *window.View
	past   history
}

func newSampler(s *storefront) *sampler {
	return &sampler{storefront: s, recent: window.NewView(lastSecond())}
}

// lastSecond returns the window of the live figures.
func lastSecond() window.Config {
	return window.Config{Span: time.Second, Buckets: 20, Edge: window.Interpolated}
}

func (l *sampler) sample() snapshot {
	at := time.Since(l.start)
	l.recent.Sample(l.payments.Totals())
	events, seen := l.journal.read()
	f := snapshot{
		at: at, run: l.day.run, phase: l.day.at(at), breaker: l.payments.Breaker().State(), alert: worstState(l.monitor.Alerts()),
		perSecond: l.shop.customers.Rate(),
		failing:   failingShare(l.recent.Counts()),
		sum:       newSummary(l.shop, seen),
		events:    inOrder(l.day.begunPhases(at), events),
		exportsTo: l.telemetry.to, metrics: l.metricsURL(), live: l.pageURL(), config: l.settings.path,
	}
	f.sum.OTelExports = l.telemetry.exporter.taken.Load()
	l.past.add(f)
	f.past = l.past
	return f
}

// failingShare returns the same share that the alert rule uses.
func failingShare(c window.Counts) float64 {
	bad, all := c.Failures+c.Refused, c.Calls()+c.Refused
	if all == 0 {
		return 0
	}
	return float64(bad) / float64(all)
}

// alertState is the state of the worst alert.
type alertState uint8

const (
	inactive alertState = iota
	pending
	firing
)

func (a alertState) String() string { return [...]string{"inactive", "pending", "firing"}[a] }

func worstState(alerts []alert.Alert) (state alertState) {
	states := map[alert.State]alertState{alert.Pending: pending, alert.Firing: firing}
	for _, a := range alerts {
		state = max(state, states[a.State])
	}
	return state
}

// columns is the number of intervals in the history of a run.
const columns = 50

// history has one entry per interval of the run so far.
type history []interval

// interval holds the worst values seen in an interval.
type interval struct {
	behavior behavior
	breaker  breaker.State
	alert    alertState
	failing  float64
}

// add adds a snapshot. An interval without a snapshot gets the values of the next one.
func (h *history) add(f snapshot) {
	now := interval{behavior: f.phase.behavior, breaker: f.breaker, alert: f.alert, failing: f.failing}
	last := min(int(columns*f.at/f.run), columns-1)
	for len(*h) <= last {
		*h = append(*h, now)
	}
	s := &(*h)[last]
	s.behavior = max(s.behavior, now.behavior)
	s.alert = max(s.alert, now.alert)
	s.failing = max(s.failing, now.failing)
	if s.breaker != breaker.Open && now.breaker != breaker.Closed {
		s.breaker = now.breaker
	}
}
