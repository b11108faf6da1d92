package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
)

// event describes something that happened.
type event struct {
	at   time.Duration // since the start
	text string
}

// journal records the transitions of the breaker and of the alert. It is safe for concurrent use.
type journal struct {
	start time.Time

	mu     sync.Mutex
	events []event
	counts transitionCounts
}

// transitionCounts counts the transitions.
type transitionCounts struct {
	breakerOpened, breakerClosed, alertsFired, alertsResolved int64
}

// changed is the function OnChange of the breaker.
func (j *journal) changed(c breaker.Change) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch c.To {
	case breaker.Open:
		j.counts.breakerOpened++
	case breaker.Closed:
		j.counts.breakerClosed++
	default: // half-open and recovering are followed by open or closed
	}
	if c.From != breaker.Closed && c.To != breaker.Closed {
		return // probes are no event
	}
	j.events = append(j.events, event{at: c.At.Sub(j.start), text: fmt.Sprintf("breaker %s to %s: %s", c.From, c.To, c.Reason)})
}

// alerted is the notifier of the monitor.
func (j *journal) alerted(_ context.Context, a alert.Alert) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	at := a.StartsAt
	if a.State == alert.Resolved {
		j.counts.alertsResolved++
		at = a.EndsAt
	} else {
		j.counts.alertsFired++
	}
	j.events = append(j.events, event{at: at.Sub(j.start), text: "alert " + string(a.State) + ": " + a.Summary})
	return nil
}

// add records another event.
func (j *journal) add(at time.Time, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, event{at: at.Sub(j.start), text: text})
}

// read returns the events so far, in order.
func (j *journal) read() ([]event, transitionCounts) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.events), j.counts
}

// inOrder merges lists of events by time.
func inOrder(lists ...[]event) []event {
	return slices.SortedStableFunc(slices.Values(slices.Concat(lists...)), func(a, b event) int {
		return cmp.Compare(a.at, b.at)
	})
}

// joinTexts joins the texts of the events.
func joinTexts(events []event) string {
	all := make([]string, len(events))
	for i, e := range events {
		all[i] = e.text
	}
	return strings.Join(all, "; ")
}
