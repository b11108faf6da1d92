package limiter

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/sentinel"
)

// ErrLimited is matched, through [errors.Is], by every refusal of a limiter.
var ErrLimited error = sentinel.RefusalError("limiter: limited")

// ErrQueueFull is matched, through [errors.Is], by the refusal of a limiter in
// whose queue as many callers wait as may.
var ErrQueueFull error = sentinel.RefusalError("limiter: queue is full")

// Reason is why a limiter refused.
type Reason string

// The reasons.
const (
	NoPermits   Reason = "no permits left"           // too few permits at the moment
	OverLimit   Reason = "more than the limit"       // more than can ever be had at once, or fewer than none
	QueueFull   Reason = "queue is full"             // the queue is as long as it may be; matches ErrQueueFull
	PastDue     Reason = "deadline cannot be met"    // the context's deadline; matches context.DeadlineExceeded
	WaitTooLong Reason = "wait longer than wanted"   // the limit that was given to WaitAtMost
	Held        Reason = "the service asked to wait" // a hold: see Gate.Hold of package weir
)

// LimitedError is a refusal with its facts. It matches [ErrLimited] and
// weir.ErrRefused, and what its Reason says.
type LimitedError struct {
	Name   string    // of the limiter, where it has one
	Reason Reason    // why it was refused
	Limit  int       // the most permits that can be had at once; 0 where there is no such limit
	Until  time.Time // when the same request may succeed; zero where it never will
}

func (e *LimitedError) Error() string {
	if e.Reason == Held { // not the decision of a limiter
		return fmt.Sprintf("%q: %s, retry after %v", e.Name, e.Reason, e.RetryAfter().Round(time.Millisecond))
	}
	text := "limiter: "
	if e.Name != "" {
		text = "limiter " + e.Name + ": "
	}
	text += string(e.Reason)
	if e.Limit > 0 {
		text += fmt.Sprintf(" (limit %d)", e.Limit)
	}
	if !e.Until.IsZero() {
		text += ", retry in " + e.RetryAfter().String()
	}
	return text
}

// Is reports whether the error is to be treated as target.
func (e *LimitedError) Is(target error) bool {
	switch target {
	case ErrLimited, sentinel.ErrRefused:
		return true
	case ErrQueueFull:
		return e.Reason == QueueFull
	case context.DeadlineExceeded:
		return e.Reason == PastDue
	}
	return false
}

// RetryAfter is how long it is from now until the same request may succeed: 0 where
// that time has come, Never where it will not.
func (e *LimitedError) RetryAfter() time.Duration {
	if e.Until.IsZero() {
		return Never
	}
	return max(time.Until(e.Until), 0)
}

// refusal makes the error for a refused request that may succeed after d.
func refusal(reason Reason, limit int, d time.Duration) *LimitedError {
	e := &LimitedError{Reason: reason, Limit: limit}
	if d != Never {
		e.Until = time.Now().Add(d)
	}
	return e
}
