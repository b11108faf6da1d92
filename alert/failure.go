package alert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Failure is why a delivery did not succeed, as the attribute error.type of the metrics has it.
// The metrics count any other text as _OTHER.
type Failure string

// The kinds of failed deliveries.
const (
	Timeout     Failure = "timeout"      // no answer in time; the alert may have arrived
	Unreachable Failure = "unreachable"  // no connection
	ClientError Failure = "http_4xx"     // an HTTP status from 400 to 499
	ServerError Failure = "http_5xx"     // an HTTP status from 500 to 599
	BreakerOpen Failure = "breaker_open" // not tried, since the notifier's breaker is open

	otherFailure Failure = "_OTHER"
	panicFailure Failure = "panic" // the notifier panicked or ended its goroutine
)

// failures are all kinds, in the order of the metrics.
var failures = [...]Failure{otherFailure, Timeout, Unreachable, ClientError, ServerError, BreakerOpen, panicFailure}

// index returns the place of the failure in failures, 0 if it has none.
func (f Failure) index() int { return max(slices.Index(failures[:], f), 0) }

// DeliveryError is an error of a notifier that says how to go on. After any other error the monitor
// tries again, but not before the time that its RetryAfter method asks for, if it has one.
type DeliveryError struct {
	// Kind is why the delivery failed. It may be empty.
	Kind Failure
	// Permanent says that the same alert would fail again. The monitor drops it.
	Permanent bool
	// Refused says that the receiver refuses the alert, maybe only for now. The monitor tries it again
	// after minutes.
	Refused bool
	// Pause is the least time until the next attempt, up to an hour. Default: the time that Err asks
	// for, if it has a method RetryAfter() time.Duration.
	Pause time.Duration
	// Err is what happened. It may be nil.
	Err error
}

func (e *DeliveryError) Error() string {
	if e.Err == nil {
		return "alert: not delivered: " + string(failures[e.Kind.index()])
	}
	return fmt.Sprintf("alert: not delivered: %v", e.Err)
}

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

// refusal reports whether the receiver has answered, and does not want what it was sent.
func (e *DeliveryError) refusal() bool { return e.Permanent || e.Refused }

// deliveryError returns what err says about its delivery.
func deliveryError(err error) *DeliveryError {
	if e, ok := errors.AsType[*DeliveryError](err); ok {
		return e
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &DeliveryError{Kind: Timeout, Err: err}
	}
	return &DeliveryError{Err: err}
}
