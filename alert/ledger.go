package alert

import (
	"container/list"
	"time"
)

// ledger is what one notifier is owed: for each alert the latest state it should
// know of. A newer state takes the place of one that was not delivered yet, so the
// ledger holds no more than the alerts of the monitor and the latest of those that
// the notifier believes to be firing. It has neither lock nor clock, and each of its
// steps costs the same however many alerts there are.
type ledger struct {
	repeat  time.Duration
	retry   time.Duration // until what was refused is tried again
	entries map[string]*entry
	due     *list.List // of entries to be delivered, the longest owed first
	refused *list.List // of entries to be tried again later, the earliest first
	gone    *list.List // of owed entries that the monitor has no more, the oldest first

	superseded, postponed, dropped int64
}

// Bounds of a ledger.
const (
	refusedRetry = 5 * time.Minute // until what was refused is tried again; never longer than the repeat
	refusedLimit = 24 * time.Hour  // for which it is, once the monitor has it no more
	maxOwedGone  = 10_000          // alerts that the monitor has no more
)

type entry struct {
	want      Alert
	queue     *list.List    // due or refused: it is owed
	place     *list.Element // in the queue
	goneAt    *list.Element // in ledger.gone
	flying    bool          // being delivered
	told      bool          // the notifier has, or may have, heard of this alert
	offered   bool          // the monitor still has it
	alone     bool          // it may be what spoils a batch
	failures  int           // of batches with it, since it was delivered last
	refusedAt time.Time     // when it was refused first, since it was delivered last
	retryAt   time.Time
	sentAt    time.Time // the evaluation at which it became owed
}

func newLedger(repeat time.Duration) *ledger {
	l := &ledger{
		repeat: repeat, retry: refusedRetry, entries: map[string]*entry{},
		due: list.New(), refused: list.New(), gone: list.New(),
	}
	if repeat > 0 {
		l.retry = min(l.retry, repeat)
	}
	return l
}

// owed returns how many alerts are owed.
func (l *ledger) owed() int { return l.due.Len() + l.refused.Len() }

// offer tells the ledger all the alerts of an evaluation. It works out by itself
// which of them are news.
func (l *ledger) offer(alerts []Alert, at time.Time) {
	for _, e := range l.entries {
		e.offered = false
	}
	for _, a := range alerts {
		if a.State == Firing || a.State == Resolved {
			l.consider(a, at)
		}
	}
	for id, e := range l.entries {
		if !e.offered {
			l.forget(id, e)
		}
	}
	for l.gone.Len() > maxOwedGone {
		l.drop(l.gone.Front().Value.(*entry))
	}
}

func (l *ledger) consider(a Alert, at time.Time) {
	e := l.entries[a.ID]
	if e == nil {
		if a.State == Resolved {
			return
		}
		e = &entry{}
		l.entries[a.ID] = e
	}
	news := e.want.State != a.State // two firings have the end of the first between them
	again := l.repeat > 0 && at.Sub(e.sentAt) >= l.repeat
	if news && e.queue != nil {
		l.superseded++
	}
	e.offered, e.want = true, a
	l.unlist(e)
	if news || again && e.queue == nil && !e.flying {
		l.owe(e)
		e.sentAt = at
	}
}

// forget drops an alert that the monitor has no more. One that has resolved without
// the notifier ever having heard of it is not worth keeping; one that the notifier
// believes to be firing is.
func (l *ledger) forget(id string, e *entry) {
	switch {
	case e.flying:
	case e.queue == nil:
		l.unlist(e)
		delete(l.entries, id)
	case !e.told:
		l.drop(e)
	case e.goneAt == nil:
		e.goneAt = l.gone.PushBack(e)
	}
}

// drop gives up an alert.
func (l *ledger) drop(e *entry) {
	l.dropped++
	l.unqueue(e)
	l.unlist(e)
	delete(l.entries, e.want.ID)
}

func (l *ledger) unlist(e *entry) {
	if e.goneAt != nil {
		l.gone.Remove(e.goneAt)
		e.goneAt = nil
	}
}

func (l *ledger) unqueue(e *entry) {
	if e.queue != nil {
		e.queue.Remove(e.place)
		e.queue, e.place = nil, nil
	}
}

func (l *ledger) enqueue(e *entry, queue *list.List) {
	l.unqueue(e)
	e.queue, e.place = queue, queue.PushBack(e)
}

// owe makes the alert due. One that is due already keeps its place.
func (l *ledger) owe(e *entry) {
	if e.queue != l.due {
		l.enqueue(e, l.due)
	}
}

// hurry makes due what was refused.
func (l *ledger) hurry() {
	for l.refused.Len() > 0 {
		l.owe(l.refused.Front().Value.(*entry))
	}
}

// take returns up to limit alerts that are due, those first that have waited longest. Of
// those that were refused before, it makes one due at a time, so that they hold up no other.
func (l *ledger) take(limit int, now time.Time) (alerts []Alert) {
	if first := l.refused.Front(); first != nil && !now.Before(first.Value.(*entry).retryAt) {
		l.owe(first.Value.(*entry))
	}
	for len(alerts) < limit && l.due.Len() > 0 {
		e := l.due.Front().Value.(*entry)
		if e.alone && len(alerts) > 0 {
			break
		}
		l.unqueue(e)
		e.flying = true
		alerts = append(alerts, e.want)
		if e.alone {
			break
		}
	}
	return alerts
}

// fresh reports whether the next alert has not been refused before.
func (l *ledger) fresh() bool {
	first := l.due.Front()
	return first != nil && first.Value.(*entry).refusedAt.IsZero()
}
