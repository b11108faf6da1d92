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

// event is something that happened, in words.
type event struct {
	at   time.Duration // since the start
	text string
}

// journal takes note of what the breaker and the alert rule do. Its methods may be called
// from any goroutine.
type journal struct {
	start time.Time

	mu     sync.Mutex
	events []event
	tally  edges
}

// edges count the changes.
type edges struct {
	breakerOpened, breakerClosed, alertsFired, alertsResolved int64
}

// changed is told by the breaker.
func (j *journal) changed(c breaker.Change) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch c.To {
	case breaker.Open:
		j.tally.breakerOpened++
	case breaker.Closed:
		j.tally.breakerClosed++
	default: // half-open leads to one of the two
	}
	if c.From != breaker.Closed && c.To != breaker.Closed {
		return // tries in between are counted, and no news
	}
	j.events = append(j.events, event{at: c.At.Sub(j.start), text: fmt.Sprintf("breaker %s to %s: %s", c.From, c.To, c.Reason)})
}

// alerted is told by the alert monitor.
func (j *journal) alerted(_ context.Context, a alert.Alert) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	at := a.StartsAt
	if a.State == alert.Resolved {
		j.tally.alertsResolved++
		at = a.EndsAt
	} else {
		j.tally.alertsFired++
	}
	j.events = append(j.events, event{at: at.Sub(j.start), text: "alert " + string(a.State) + ": " + a.Summary})
	return nil
}

// read returns what has been noted so far, in the order in which it happened.
func (j *journal) read() ([]event, edges) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.events), j.tally
}

// inOrder merges events by time.
func inOrder(lists ...[]event) []event {
	return slices.SortedStableFunc(slices.Values(slices.Concat(lists...)), func(a, b event) int {
		return cmp.Compare(a.at, b.at)
	})
}

// texts joins what events say.
func texts(events []event) string {
	all := make([]string, len(events))
	for i, e := range events {
		all[i] = e.text
	}
	return strings.Join(all, "; ")
}
