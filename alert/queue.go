package alert

import (
	"container/list"
	"time"
)

// queue holds the alerts that one notifier has yet to receive, each in its latest state. A newer
// state replaces an undelivered one, so the queue holds at most the alerts of the monitor and
// maxUnreported others. It has neither a lock nor a clock. Except for update, every step takes
// constant time.
type queue struct {
	repeat  time.Duration // 0 for never
	retry   time.Duration // from a refusal to the next attempt
	entries map[string]*entry
	due     *list.List // entries to deliver now, the longest waiting first
	refused *list.List // entries to try again later, the earliest first
	// entries still to deliver that the monitor no longer reports, the oldest first
	unreported *list.List

	inFlight int // alerts of batches that are being delivered

	held        *list.List // entries to deliver once no silence matches them
	ownSilences bool       // the receiver silences alerts itself, so no Silence applies

	superseded, refusals, dropped, silenced int64
}

const (
	refusedRetry  = 5 * time.Minute // from a refusal to the next attempt, unless repeat is shorter
	refusedLimit  = 24 * time.Hour  // how long a refused alert is retried once it is unreported
	maxUnreported = 10_000          // alerts that the monitor no longer reports
)

// entry is an alert of a queue.
type entry struct {
	alert        Alert
	list         *list.List    // due, refused or held, or nil if nothing is to be delivered
	place        *list.Element // in list
	unreportedAt *list.Element // in queue.unreported
	inFlight     bool          // being delivered
	silenced     bool          // a silence matches, and the latest state is Firing
	toldFiring   bool          // the receiver has, or may have, heard that the alert fires
	// StartsAt of the last alert that the receiver got; zero if that is not known
	toldStart time.Time
	notified  bool      // the receiver has, or may have, heard of the alert
	reported  bool      // the latest evaluation has the alert
	alone     bool      // to be sent alone, because it may have made a batch fail
	failures  int       // of batches with the alert since its last delivery
	refusedAt time.Time // the first refusal since its last delivery
	retryAt   time.Time // after a refusal
	changedAt time.Time // the evaluation at which the state changed or was repeated

	restoredDue, restoredHeld bool // restored from a state file: the list that the entry belongs to
}

func newQueue(repeat time.Duration) *queue {
	q := &queue{
		entries: map[string]*entry{},
		due:     list.New(), refused: list.New(), unreported: list.New(), held: list.New(),
	}
	q.setRepeat(repeat)
	return q
}

func (q *queue) setRepeat(repeat time.Duration) {
	q.repeat, q.retry = repeat, refusedRetry
	if repeat > 0 {
		q.retry = min(q.retry, repeat)
	}
}

// pending returns the number of alerts to deliver, including refused ones and those in flight.
func (q *queue) pending() int { return q.due.Len() + q.refused.Len() + q.inFlight }

// update takes all alerts of an evaluation and queues those that are new, have changed or are to be
// repeated.
func (q *queue) update(alerts []Alert, at time.Time) {
	for _, e := range q.entries {
		e.reported = false
	}
	for _, a := range alerts {
		if a.State == Firing || a.State == Resolved {
			q.updateAlert(a, at)
		}
	}
	for id, e := range q.entries {
		if !e.reported {
			q.removeUnreported(id, e)
		}
	}
	for q.unreported.Len() > maxUnreported {
		q.dropAlert(q.unreported.Front().Value.(*entry))
	}
}

func (q *queue) updateAlert(a Alert, at time.Time) {
	e := q.entries[a.ID]
	if e == nil {
		if a.State == Resolved {
			return
		}
		e = &entry{}
		q.entries[a.ID] = e
	}
	changed := e.alert.State != a.State // an alert resolves before it fires again
	repeat := q.repeat > 0 && at.Sub(e.changedAt) >= q.repeat
	wasHeld := e.list == q.held
	if changed && e.list != nil && !wasHeld {
		q.superseded++
	}
	e.reported, e.alert = true, a
	e.silenced = a.State == Firing && a.SilencedBy != "" && !q.ownSilences
	q.clearUnreported(e)
	switch {
	case e.silenced:
		if changed || e.list != nil {
			q.holdSilenced(e)
		}
	case changed && e.list != nil && !wasHeld && e.receiverKnows(a):
		q.unlist(e) // its labels differed for a time, and the receiver got no alert with those
	case wasHeld && a.State == Resolved && !e.toldFiring && !e.inFlight:
		q.unlist(e) // the receiver knows of no firing alert to resolve
		delete(q.entries, a.ID)
	case changed || wasHeld || repeat && e.list == nil && !e.inFlight:
		q.makeDue(e)
		e.changedAt = at
	}
}

// receiverKnows reports whether the last message that the receiver got says the same as a.
func (e *entry) receiverKnows(a Alert) bool {
	return !e.inFlight && !e.toldStart.IsZero() && e.toldStart.Equal(a.StartsAt) && e.toldFiring == (a.State == Firing)
}

// holdSilenced delays a notification until no silence matches its alert.
func (q *queue) holdSilenced(e *entry) {
	if e.list != q.held {
		q.silenced++
		q.appendTo(q.held, e)
	}
}

// removeUnreported removes an alert that the monitor no longer reports, unless it is in flight, or
// is due and the receiver may have heard of it.
func (q *queue) removeUnreported(id string, e *entry) {
	switch {
	case e.inFlight:
	case e.list == nil || e.list == q.held:
		q.unlist(e)
		q.clearUnreported(e)
		delete(q.entries, id)
	case !e.notified:
		q.dropAlert(e)
	case e.unreportedAt == nil:
		e.unreportedAt = q.unreported.PushBack(e)
	}
}

// dropAlert removes an alert that was not delivered.
func (q *queue) dropAlert(e *entry) {
	q.dropped++
	q.unlist(e)
	q.clearUnreported(e)
	delete(q.entries, e.alert.ID)
}

func (q *queue) clearUnreported(e *entry) {
	if e.unreportedAt != nil {
		q.unreported.Remove(e.unreportedAt)
		e.unreportedAt = nil
	}
}

// makeDue moves the alert to the end of the due list, unless it is due already.
func (q *queue) makeDue(e *entry) {
	if e.list != q.due {
		q.appendTo(q.due, e)
	}
}

// makeRefusedDue moves all refused alerts to the due list.
func (q *queue) makeRefusedDue() {
	for q.refused.Len() > 0 {
		q.makeDue(q.refused.Front().Value.(*entry))
	}
}

func (q *queue) appendTo(l *list.List, e *entry) {
	q.unlist(e)
	e.list, e.place = l, l.PushBack(e)
}

func (q *queue) unlist(e *entry) {
	if e.list != nil {
		e.list.Remove(e.place)
		e.list, e.place = nil, nil
	}
}

// nextBatch returns up to limit due alerts, the longest waiting first, and marks them as in flight.
// If the retry time of several refused alerts has come, it makes only one of them due per batch, so
// that they do not delay other alerts.
func (q *queue) nextBatch(limit int, now time.Time) (alerts []Alert) {
	if first := q.refused.Front(); first != nil && !now.Before(first.Value.(*entry).retryAt) {
		q.makeDue(first.Value.(*entry))
	}
	for len(alerts) < limit && q.due.Len() > 0 {
		e := q.due.Front().Value.(*entry)
		if e.alone && len(alerts) > 0 {
			break
		}
		q.unlist(e)
		e.inFlight = true
		alerts = append(alerts, e.alert)
		if e.alone {
			break
		}
	}
	q.inFlight += len(alerts)
	return alerts
}

// nextIsNew reports whether there is a next alert that was not refused before.
func (q *queue) nextIsNew() bool {
	first := q.due.Front()
	return first != nil && first.Value.(*entry).refusedAt.IsZero()
}

// finish ends the delivery of a batch; failed is nil if it was delivered. Alerts of a failed batch
// go to the end of the due list, so that one bad alert does not delay the others.
func (q *queue) finish(batch []Alert, failed *DeliveryError, now time.Time) {
	q.inFlight -= len(batch)
	for _, a := range batch {
		e := q.entries[a.ID]
		if e == nil { // dropped meanwhile
			continue
		}
		e.inFlight = false
		e.notified = e.notified || failed == nil || failed.Kind == kindTimeout
		switch {
		case failed == nil:
			e.toldFiring = a.State == Firing
			e.toldStart = a.StartsAt
		case failed.Kind == kindTimeout:
			e.toldFiring = e.toldFiring || a.State == Firing
			e.toldStart = time.Time{}
		}
		switch {
		case failed == nil:
			e.alone, e.failures, e.refusedAt = false, 0, time.Time{}
		case len(batch) > 1:
			e.alone = e.mayFailBatch(failed)
			q.makeDueAgain(e)
		case failed.Permanent:
			q.dropped++
		case failed.Refused:
			q.postpone(e, now)
		default:
			q.makeDueAgain(e)
		}
		if !e.reported {
			q.removeUnreported(a.ID, e)
		}
	}
}

// maxBatchFailures is how many batches with an alert may fail before it is sent alone.
const maxBatchFailures = 3

// mayFailBatch reports whether the alert may be the reason that its batch failed: the batch was
// rejected, or several batches with the alert failed although the receiver could be reached.
func (e *entry) mayFailBatch(failed *DeliveryError) bool {
	switch {
	case failed.rejected():
		return true
	case failed.Kind == kindUnreachable || failed.Kind == kindBreakerOpen:
		return false
	}
	e.failures++
	return e.failures >= maxBatchFailures
}

// makeDueAgain makes the alert due after a failure. If a newer state is queued already, the state
// that failed is superseded.
func (q *queue) makeDueAgain(e *entry) {
	if e.list != nil {
		q.superseded++
		return
	}
	if e.silenced {
		q.holdSilenced(e)
		return
	}
	q.makeDue(e)
}

// postpone moves a refused alert to the refused list. If a newer state is queued already, the newer
// state is tried at once.
func (q *queue) postpone(e *entry, now time.Time) {
	if e.refusedAt.IsZero() {
		e.refusedAt = now
	}
	switch {
	case e.list != nil:
		q.superseded++
	case e.silenced:
		q.holdSilenced(e)
	case !e.reported && now.Sub(e.refusedAt) >= refusedLimit:
		q.dropped++
	default:
		q.refusals++
		e.retryAt = now.Add(q.retry)
		q.appendTo(q.refused, e)
	}
}
