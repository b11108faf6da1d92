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
// tries again.
type DeliveryError struct {
	Kind       Failure       // why it failed; may be empty
	Permanent  bool          // the same alert would fail again: it is dropped
	Refused    bool          // the receiver refuses the alert, maybe only for now: it is tried again after minutes
	RetryAfter time.Duration // do not try before this time has passed; at most an hour is honored
	Err        error         // what happened; may be nil
}

func (e *DeliveryError) Error() string {
	if e.Err == nil {
		return "alert: not delivered: " + string(failures[e.Kind.index()])
	}
	return fmt.Sprintf("alert: not delivered: %v", e.Err)
}

func (e *DeliveryError) Unwrap() error { return e.Err }

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
