package limiter

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/places"
	"github.com/weir-go/weir/internal/sentinel"
)

// ErrLimited matches every refusal of a limiter, with [errors.Is].
var ErrLimited error = sentinel.RefusalError("limiter: limited")

// Reason is why a request was refused.
type Reason string

// The reasons for a refusal.
const (
	// NoTokens means that there are too few tokens now, or before the MaxWait of a gate has passed.
	NoTokens Reason = "no tokens left"
	// OverLimit means that the request is for more tokens than the limiter can ever have, or for
	// less than 0.
	OverLimit Reason = "more than the limit"
	// QueueFull means that no more callers may wait.
	QueueFull Reason = "queue is full"
	// PastDue means that the deadline of the context is too early. It matches
	// context.DeadlineExceeded.
	PastDue Reason = "deadline cannot be met"
	// Held means that the service asked to wait: see Gate.Hold of package weir.
	Held Reason = "the service asked to wait"
	// NoRoom means that a Group has no room for the key, because GroupConfig.MaxKeys other keys are
	// in use, and ShareNew is not set.
	NoRoom Reason = "no room for the key"
)

// LimitedError is the error for a refused request. It matches [ErrLimited] and weir.ErrRefused, and
// context.DeadlineExceeded if its Reason is PastDue.
type LimitedError struct {
	// Name is the name of the limiter, or "".
	Name string
	// Reason is why the request was refused.
	Reason Reason
	// Limit is the maximum number of tokens that one request can take, or 0 if there is no such
	// limit.
	Limit int
	// Until is when the same request may succeed, or zero if never.
	Until time.Time
	// MaxKeys is GroupConfig.MaxKeys if a Group had no room for the key. Otherwise it is 0.
	MaxKeys int

	bound  string         // the name of the bound of a full queue, or ""
	most   int64          // its value
	wait   time.Duration  // the MaxWait of a gate that was too short, or 0
	places *places.Places // the moments at which callers may retry; nil if Until is for all of them
}

func (e *LimitedError) Error() string {
	if e.Reason == Held { // not the decision of a limiter
		return fmt.Sprintf("%q: %s%s, retry after %v", e.Name, e.Reason, e.maxWaitText(), e.untilNext().Round(time.Millisecond))
	}
	text := "limiter: "
	if e.Name != "" {
		text = "limiter " + e.Name + ": "
	}
	text += string(e.Reason)
	if e.Reason == NoRoom && e.MaxKeys > 0 {
		text += fmt.Sprintf(": MaxKeys is %d", e.MaxKeys)
	}
	if e.bound != "" {
		text += fmt.Sprintf(": %s is %d", e.bound, e.most)
	}
	text += e.maxWaitText()
	if e.Limit > 0 {
		text += fmt.Sprintf(" (limit %d)", e.Limit)
	}
	if e.Reason != NoRoom && e.MaxKeys > 0 {
		text += fmt.Sprintf(", which all keys without room share: MaxKeys is %d", e.MaxKeys)
	}
	if !e.Until.IsZero() {
		text += ", retry in " + e.untilNext().String()
	}
	return text
}

func (e *LimitedError) maxWaitText() string {
	if e.wait == 0 {
		return ""
	}
	return fmt.Sprintf(": MaxWait is %v", e.wait)
}

// Is reports whether the error matches target.
func (e *LimitedError) Is(target error) bool {
	switch target {
	case ErrLimited, sentinel.ErrRefused:
		return true
	case context.DeadlineExceeded:
		return e.Reason == PastDue
	}
	return false
}

// RetryAfter returns the time from now until the same request may succeed: 0 if that time has come,
// Never if it will not come.
//
// A gate may refuse many callers until the same moment, when there is only one token for all of
// them. So if the limit of a weir.Gate itself refused the call, each caller gets a different
// moment. These moments follow each other at the rate of the limit, at most 1min later than Until.
// No token is reserved for them. If RetryAfter is called more than once per refused call, several
// callers get the same moments.
func (e *LimitedError) RetryAfter() time.Duration {
	if e.places != nil && !e.Until.IsZero() {
		return e.places.After(e.Until)
	}
	return e.untilNext()
}

// untilNext returns the time from now until Until.
func (e *LimitedError) untilNext() time.Duration {
	if e.Until.IsZero() {
		return Never
	}
	return max(time.Until(e.Until), 0)
}

// newLimitedError returns the error for a request that was answered with r.
func newLimitedError(reason Reason, r Result) *LimitedError {
	e := &LimitedError{Reason: reason, Limit: r.Limit}
	if r.RetryAfter != Never {
		e.Until = time.Now().Add(r.RetryAfter)
	}
	return e
}

// refusalOf returns the error for a request for n tokens that was refused with r.
func refusalOf(r Result, n int) error {
	switch {
	case n < 1 || n > r.Limit:
		return newLimitedError(OverLimit, r)
	case r.NoRoom:
		return newLimitedError(NoRoom, r)
	}
	return newLimitedError(NoTokens, r)
}
