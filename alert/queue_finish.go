package alert

import "time"

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
