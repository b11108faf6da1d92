package alert

import "time"

// settle books how the delivery of alerts that were taken went. What failed is owed
// again, behind the others, so that one bad alert does not hold them up.
func (l *ledger) settle(alerts []Alert, failed *DeliveryError, now time.Time) {
	for _, a := range alerts {
		e := l.entries[a.ID]
		if e == nil { // it was given up meanwhile
			continue
		}
		e.flying = false
		e.told = e.told || failed == nil || failed.Kind == Timeout
		switch {
		case failed == nil:
			e.alone, e.failures, e.refusedAt = false, 0, time.Time{}
		case len(alerts) > 1:
			e.alone = e.spoils(failed)
			l.again(e)
		case failed.Permanent:
			l.dropped++
		case failed.Refused:
			l.postpone(e, now)
		default:
			l.again(e)
		}
		if !e.offered {
			l.forget(a.ID, e)
		}
	}
}

// spoiled is how often batches with an alert may fail before it is sent alone.
const spoiled = 3

// spoils reports whether the alert may be why its batch failed. It is then sent alone, so that it
// costs no other. A refused batch is one reason. Another is that batches with the alert have failed
// several times at a receiver that can be reached.
func (e *entry) spoils(failed *DeliveryError) bool {
	switch {
	case failed.refusal():
		return true
	case failed.Kind == Unreachable || failed.Kind == BreakerOpen:
		return false
	}
	e.failures++
	return e.failures >= spoiled
}

// again owes the alert once more, unless a newer state of it is owed already.
func (l *ledger) again(e *entry) {
	if e.queue != nil {
		l.superseded++
		return
	}
	l.owe(e)
}

// postpone puts off an alert that its receiver refuses. A newer state is tried at once.
func (l *ledger) postpone(e *entry, now time.Time) {
	if e.refusedAt.IsZero() {
		e.refusedAt = now
	}
	switch {
	case e.queue != nil:
		l.superseded++
	case !e.offered && now.Sub(e.refusedAt) >= refusedLimit:
		l.dropped++
	default:
		l.postponed++
		e.retryAt = now.Add(l.retry)
		l.enqueue(e, l.refused)
	}
}
