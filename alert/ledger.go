package alert

import (
	"cmp"
	"slices"
	"time"
)

// ledger is what one notifier is owed: for each alert the latest state it should
// know of. A newer state takes the place of one that was not delivered yet, so the
// ledger holds no more than the alerts of the monitor and those that the notifier
// believes to be firing. It has neither lock nor clock.
type ledger struct {
	repeat  time.Duration
	entries map[string]*entry
	seq     int64 // of the entry that became owed last
	owed    int

	superseded, dropped int64
}

type entry struct {
	want    Alert
	owed    bool
	flying  bool      // being delivered
	told    bool      // the notifier has, or may have, heard of this alert
	offered bool      // the monitor still has it
	since   int64     // when it became owed, in the ledger's sequence
	sentAt  time.Time // the evaluation at which it became owed
}

func newLedger(repeat time.Duration) *ledger {
	return &ledger{repeat: repeat, entries: map[string]*entry{}}
}

// offer tells the ledger all the alerts of an evaluation. It works out by itself
// which of them are news.
func (l *ledger) offer(alerts []Alert, at time.Time) {
	for _, e := range l.entries {
		e.offered = false
	}
	for _, a := range alerts {
		if a.State == Firing || a.Resolved() {
			l.consider(a, at)
		}
	}
	for id, e := range l.entries {
		if !e.offered {
			l.forget(id, e)
		}
	}
}

func (l *ledger) consider(a Alert, at time.Time) {
	e := l.entries[a.ID]
	if e == nil {
		if a.Resolved() {
			return
		}
		e = &entry{}
		l.entries[a.ID] = e
	}
	news := e.want.State != a.State // two firings have the end of the first between them
	again := l.repeat > 0 && at.Sub(e.sentAt) >= l.repeat
	if news && e.owed {
		l.superseded++
	}
	e.offered, e.want = true, a
	if news || again && !e.owed && !e.flying {
		l.owe(e)
		e.sentAt = at
	}
}

// forget drops an alert that the monitor has no more. One that has resolved without
// the notifier ever having heard of it is not worth keeping; one that the notifier
// believes to be firing is.
func (l *ledger) forget(id string, e *entry) {
	switch {
	case e.flying || e.owed && e.told:
	case e.owed:
		l.dropped++
		l.owed--
		delete(l.entries, id)
	default:
		delete(l.entries, id)
	}
}

func (l *ledger) owe(e *entry) {
	if e.owed {
		return
	}
	l.seq++
	l.owed++
	e.owed, e.since = true, l.seq
}

// take returns up to limit alerts that are owed, those first that have waited longest.
func (l *ledger) take(limit int) []Alert {
	var owed []*entry
	for _, e := range l.entries {
		if e.owed {
			owed = append(owed, e)
		}
	}
	slices.SortFunc(owed, func(a, b *entry) int { return cmp.Compare(a.since, b.since) })
	owed = owed[:min(limit, len(owed))]
	alerts := make([]Alert, len(owed))
	for i, e := range owed {
		alerts[i] = e.want
		e.owed, e.flying = false, true
		l.owed--
	}
	return alerts
}

// settle books how the delivery of alerts that were taken went. What failed is owed
// again, behind the others, so that one bad alert does not hold them up.
func (l *ledger) settle(alerts []Alert, failed *DeliveryError) {
	for _, a := range alerts {
		e := l.entries[a.ID]
		e.flying = false
		e.told = e.told || failed == nil || failed.Kind == Timeout
		switch {
		case failed == nil:
		case failed.Permanent:
			l.dropped++
		case e.owed:
			l.superseded++
		default:
			l.owe(e)
		}
		if !e.offered {
			l.forget(a.ID, e)
		}
	}
}
