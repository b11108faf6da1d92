package alert

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Failure is why a delivery did not succeed.
type Failure uint8

// The kinds of failed deliveries.
const (
	Other       Failure = iota // none of the below
	Timeout                    // no answer in time; the alert may have arrived
	Unreachable                // no connection
	ClientError                // an HTTP status from 400 to 499
	ServerError                // an HTTP status from 500 to 599
	BreakerOpen                // not tried, since the notifier's breaker is open
	Panicked                   // the notifier panicked or ended its goroutine
)

// failures is how many kinds there are.
const failures = Panicked + 1

// known returns the failure, and Other for what is none of them.
func (f Failure) known() Failure {
	if f >= failures {
		return Other
	}
	return f
}

// String returns the failure as the error.type of the figures.
func (f Failure) String() string {
	return [failures]string{"_OTHER", "timeout", "unreachable", "http_4xx", "http_5xx", "breaker_open", "panic"}[f.known()]
}

// DeliveryError is what a notifier may return to say more than that it failed.
// An error that is none counts as Other and is tried again.
type DeliveryError struct {
	Kind       Failure       // why it failed
	Permanent  bool          // the same alert would fail again: it is dropped
	Refused    bool          // the receiver refuses the alert, maybe only for now: it is tried again after minutes
	RetryAfter time.Duration // do not try before this time has passed; at most an hour is honored
	Err        error         // what happened; may be nil
}

func (e *DeliveryError) Error() string {
	if e.Err == nil {
		return "alert: not delivered: " + e.Kind.String()
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
	return &DeliveryError{Kind: Other, Err: err}
}
