package alert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Failure is the reason a delivery failed. It is the attribute error.type of the metrics, where any
// other text becomes _OTHER.
type Failure string

// The reasons of failed deliveries.
const (
	Timeout     Failure = "timeout"      // no answer in time; the alert may have arrived
	Unreachable Failure = "unreachable"  // no connection
	ClientError Failure = "http_4xx"     // an HTTP status from 400 to 499
	ServerError Failure = "http_5xx"     // an HTTP status from 500 to 599
	BreakerOpen Failure = "breaker_open" // not tried, because the notifier's breaker is open

	otherFailure Failure = "_OTHER"
	panicFailure Failure = "panic" // the notifier panicked or ended its goroutine
)

// failures lists all reasons in the order of the metrics.
var failures = [...]Failure{otherFailure, Timeout, Unreachable, ClientError, ServerError, BreakerOpen, panicFailure}

// index returns the index of f in failures, or that of otherFailure.
func (f Failure) index() int { return max(slices.Index(failures[:], f), 0) }

// DeliveryError is an error of a notifier that tells the monitor how to continue. After any other
// error the monitor tries again, but not before the wait that the error's RetryAfter method asks
// for, if it has one.
type DeliveryError struct {
	// Kind is the reason. It may be empty.
	Kind Failure
	// Permanent means that the same alert would fail again. The monitor drops it.
	Permanent bool
	// Refused means that the receiver does not accept the alert, maybe only for now. The monitor
	// tries it again after minutes.
	Refused bool
	// Pause is the minimum wait before the next attempt, up to 1h. Default: the wait that Err asks
	// for, if it has a method RetryAfter() time.Duration.
	Pause time.Duration
	// Err is the cause. It may be nil.
	Err error
}

// Error returns the text of Err, or the Kind if Err is nil.
func (e *DeliveryError) Error() string {
	if e.Err == nil {
		return "alert: not delivered: " + string(failures[e.Kind.index()])
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
		return &DeliveryError{Kind: Timeout, Err: err}
	}
	return &DeliveryError{Err: err}
}
