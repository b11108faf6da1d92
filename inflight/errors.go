package inflight

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/places"
	"github.com/weir-go/weir/internal/sentinel"
)

// ErrFull matches every refusal of a [Limiter], with [errors.Is].
var ErrFull error = sentinel.RefusalError("inflight: full")

// FullError is the error of a call that got no slot. It matches [ErrFull] and weir.ErrRefused, and
// context.DeadlineExceeded if the deadline passed during the wait for a slot.
type FullError struct {
	// Name is the name of the limiter, or "".
	Name string
	// Limit is the highest number of calls in flight.
	Limit int
	// Until is when a slot is expected for the call. It is estimated from the recent rate at which
	// slots are released and from the waiters that would be served before the call: see
	// Queue.Shares and Queue.TenantWeight. Callers that come later are not included. Until is at
	// most 1s later than the refusal. A limiter always sets it.
	Until time.Time

	reason     reason
	waited     waitLimit     // the wait that was too long
	maxWait    time.Duration // of a gate, if it was too short
	maxWaiters int           // 0 for no bound
	even       *places.Even  // of RetryAfter; nil for none
}

type reason uint8

const (
	noSlot reason = iota
	queueFull
	waitedTooLong
	deadlinePassed
)

func (e *FullError) Error() string {
	text := "inflight limiter"
	if e.Name != "" {
		text += fmt.Sprintf(" %q", e.Name)
	}
	switch e.reason {
	case queueFull:
		text += " and its queue are full"
	case waitedTooLong:
		text += fmt.Sprintf(" had no slot within %v", e.waited.wait)
	case deadlinePassed:
		text += " had no slot before the deadline"
	case noSlot:
		text += " is full"
	}
	switch {
	case e.reason == queueFull:
		text += fmt.Sprintf(" (limit %d, MaxWaiters %d)", e.Limit, e.maxWaiters)
	case e.waited.bound != "":
		text += fmt.Sprintf(" (limit %d, %s %v)", e.Limit, e.waited.bound, e.waited.wait)
	case e.maxWait > 0:
		text += fmt.Sprintf(" (limit %d, MaxWait %v)", e.Limit, e.maxWait)
	default:
		text += fmt.Sprintf(" (limit %d)", e.Limit)
	}
	if !e.Until.IsZero() {
		text += fmt.Sprintf(", retry after %v", max(e.untilFree().Round(time.Millisecond), time.Millisecond))
	}
	return text
}

// Is reports whether the error matches target.
func (e *FullError) Is(target error) bool {
	switch target {
	case ErrFull, sentinel.ErrRefused:
		return true
	case context.DeadlineExceeded:
		return e.reason == deadlinePassed
	}
	return false
}

// RetryAfter returns how long to wait before retrying: the time from now until Until plus a part of
// that time, so at most 2s. It is 0 if Until has passed or is not known. Each call of RetryAfter
// adds a different part, evenly spread between none and all of that time, so that callers that are
// refused together do not retry together.
func (e *FullError) RetryAfter() time.Duration {
	d := e.untilFree()
	if e.even != nil {
		d += e.even.Next(d)
	}
	return d
}

// untilFree returns the time from now until Until: 0 if that has passed or is not known.
func (e *FullError) untilFree() time.Duration {
	if e.Until.IsZero() {
		return 0
	}
	return max(time.Until(e.Until), 0)
}

// sameMoment bounds the difference between the Until of two refusals that share one error.
const sameMoment = time.Millisecond

// newFullError returns the error of a call that got no slot. Calls of a priority that are refused
// until the same moment share one error, so that refusals under load do not allocate.
func (l *Limiter) newFullError(c Caller, r reason, most waitLimit) *FullError {
	return l.newGateFullError(l.name, c, r, most)
}

// newGateFullError is like full, but for a call of a gate. The error has the name of the gate.
func (l *Limiter) newGateFullError(name string, c Caller, r reason, most waitLimit) *FullError {
	now := time.Since(l.epoch)
	until := l.epoch.Add(now + l.turnover.untilFree(now, l.state.endedCalls(), l.queue.position(c)))
	limit, maxWaiters, last := l.Limit(), int(l.queue.maxWaiters.Load()), &l.lastFull[c.Priority.class()]
	if e := last.Load(); e != nil && e.Limit == limit && e.maxWaiters == maxWaiters && e.reason == r && e.waited == most && e.Name == name {
		if early := until.Sub(e.Until); early >= 0 && early < sameMoment {
			return e
		}
	}
	e := &FullError{Name: name, Limit: limit, Until: until, reason: r, waited: most, maxWaiters: maxWaiters}
	if before := last.Load(); before != nil {
		e.even = before.even
	} else {
		e.even = new(places.Even)
	}
	last.Store(e)
	return e
}
