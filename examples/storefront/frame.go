package main

import (
	"time"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/window"
)

// frame is all that is shown at one moment: plain values.
type frame struct {
	at        time.Duration // since the start
	run       time.Duration
	phase     phase
	breaker   breaker.State
	alert     alarm
	perSecond float64 // customers
	failing   float64 // the share of payments that failed or that the breaker refused
	sum       summary
	events    []event // in order
	past      history
	exportsTo string
	metrics   string // where Prometheus finds the figures
	live      string // where people do
}

// lookout takes frames.
type lookout struct {
	*storefront
	recent *window.View
	past   history
}

func newLookout(s *storefront) *lookout {
	return &lookout{storefront: s, recent: window.NewView(lastSecond())}
}

// lastSecond is the window that the live figures are taken over.
func lastSecond() window.Config {
	return window.Config{Span: time.Second, Buckets: 20, Edge: window.Interpolated}
}

func (l *lookout) look() frame {
	at := time.Since(l.start)
	l.recent.Sample(l.payments.Totals())
	events, seen := l.journal.read()
	f := frame{
		at: at, run: l.day.run, phase: l.day.at(at), breaker: l.payments.Breaker().State(), alert: worst(l.monitor.Alerts()),
		perSecond: l.shop.customers.Rate(),
		failing:   failing(l.recent.Counts()),
		sum:       sold(l.shop, seen),
		events:    inOrder(l.day.begun(at), events),
		exportsTo: l.telemetry.to, metrics: l.metricsURL(), live: l.pageURL(),
	}
	f.sum.OTelExports = l.telemetry.exporter.taken.Load()
	l.past.note(f)
	f.past = l.past
	return f
}

// failing is the share that the alert rule judges too.
func failing(c window.Counts) float64 {
	bad, all := c.Failures+c.Refused, c.Calls()+c.Refused
	if all == 0 {
		return 0
	}
	return float64(bad) / float64(all)
}

// alarm is the worst state of the alerts.
type alarm uint8

const (
	inactive alarm = iota
	pending
	firing
)

func (a alarm) String() string { return [...]string{"inactive", "pending", "firing"}[a] }

func worst(alerts []alert.Alert) (state alarm) {
	states := map[alert.State]alarm{alert.Pending: pending, alert.Firing: firing}
	for _, a := range alerts {
		state = max(state, states[a.State])
	}
	return state
}

// columns is how many stretches the history divides the run into.
const columns = 50

// history is the run so far, a stretch at a time.
type history []stretch

// stretch is the worst of what was seen in it.
type stretch struct {
	does    conduct
	breaker breaker.State
	alert   alarm
	failing float64
}

// note adds a frame. Stretches that no frame fell into look like the one after.
func (h *history) note(f frame) {
	now := stretch{does: f.phase.does, breaker: f.breaker, alert: f.alert, failing: f.failing}
	last := min(int(columns*f.at/f.run), columns-1)
	for len(*h) <= last {
		*h = append(*h, now)
	}
	s := &(*h)[last]
	s.does = max(s.does, now.does)
	s.alert = max(s.alert, now.alert)
	s.failing = max(s.failing, now.failing)
	if s.breaker != breaker.Open && now.breaker != breaker.Closed {
		s.breaker = now.breaker
	}
}
