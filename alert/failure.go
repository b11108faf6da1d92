package alert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// The kinds of failed deliveries: see DeliveryError.Kind.
const (
	kindTimeout     = "timeout"
	kindUnreachable = "unreachable"
	kindBreakerOpen = "breaker_open"
	kindPanic       = "panic" // the notifier panicked or ended its goroutine
)

// errorKinds are the values of the attribute error.type in the order of the metrics.
var errorKinds = [...]string{"_OTHER", kindTimeout, kindUnreachable, "http_4xx", "http_5xx", kindBreakerOpen, kindPanic}

// kindIndex returns the index of kind in errorKinds, or that of _OTHER.
func kindIndex(kind string) int { return max(slices.Index(errorKinds[:], kind), 0) }

// DeliveryError is an error of a notifier that says whether and when the monitor should try again.
// After any other error the monitor tries again. If that error has a RetryAfter method, the monitor
// waits at least as long as that method says, up to 1h.
type DeliveryError struct {
	// Kind is the attribute error.type of the metrics:
	//
	//   - "timeout": there was no answer in time, so the alert may have arrived.
	//   - "unreachable": there was no connection.
	//   - "http_4xx" or "http_5xx": the receiver answered with such a status.
	//   - "breaker_open": the notifier's breaker is open, so nothing was sent.
	//
	// Any other text counts as _OTHER. Default "".
	Kind string
	// Permanent means that the same alert would fail again. The monitor drops it.
	Permanent bool
	// Refused means that the receiver does not accept the alert, maybe only for now. The monitor
	// tries it again after minutes.
	Refused bool
	// Pause is the minimum wait before the next attempt, up to 1h. Default the wait that Err asks
	// for, if it has a method RetryAfter() time.Duration.
	Pause time.Duration
	// Err is the cause. It may be nil.
	Err error
}

// Error returns the text of Err, or the Kind if Err is nil.
func (e *DeliveryError) Error() string {
	if e.Err == nil {
		return "alert: not delivered: " + errorKinds[kindIndex(e.Kind)]
	}
	return fmt.Sprintf("alert: not delivered: %v", e.Err)
}

// Unwrap returns Err.
func (e *DeliveryError) Unwrap() error { return e.Err }

// RetryAfter returns how long to wait before the next attempt: Pause, or if that is 0 the result of
// the first RetryAfter method in Err's tree, or 0 if there is none.
func (e *DeliveryError) RetryAfter() time.Duration {
	var waiting interface{ RetryAfter() time.Duration }
	if e.Pause == 0 && errors.As(e.Err, &waiting) {
		return waiting.RetryAfter()
	}
	return e.Pause
}

// rejected reports whether the receiver has answered and does not accept the alerts.
func (e *DeliveryError) rejected() bool { return e.Permanent || e.Refused }

// asDeliveryError returns the DeliveryError in err's tree, or a new one with the cause err.
func asDeliveryError(err error) *DeliveryError {
	if e, ok := errors.AsType[*DeliveryError](err); ok {
		return e
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &DeliveryError{Kind: kindTimeout, Err: err}
	}
	return &DeliveryError{Err: err}
}
