// Package verdict says what a call tells about the service behind a guard.
package verdict

import (
	"context"
	"errors"
)

// The outcomes, numbered as those of package window.
const (
	success = iota
	failure
	ignored
)

// On returns the outcome of a call that was made with ctx and returned err. classify is asked
// only if the result says anything about the service; nil takes every error for a failure.
//
// An error of a call that its caller has cancelled is ignored, and so is one that an inner guard
// refused: neither reached the service, or came back from it. A result without an error is ignored
// if the caller has cancelled and classify takes it for a failure.
func On[O ~uint8](ctx context.Context, err error, classify func(error) O) O {
	var f Findings
	return Find(&f, ctx, err, classify)
}

// Find is On that keeps in f what it found in err.
//
//nolint:revive // f is what the caller has, as a receiver is
func Find[O ~uint8](f *Findings, ctx context.Context, err error, classify func(error) O) O {
	if err == nil {
		if classify == nil {
			return success
		}
		o := classify(nil)
		if o == failure && Cancelled(ctx) {
			return ignored
		}
		return o
	}
	if Cancelled(ctx) {
		return ignored
	}
	if f.Search(err); f.Refused {
		return ignored
	}
	if classify == nil {
		return failure
	}
	return classify(err)
}

// Unreturned is the outcome of a call that panicked or ended its goroutine.
func Unreturned[O ~uint8](ctx context.Context) O {
	if Cancelled(ctx) {
		return ignored
	}
	return failure
}

// Cancelled reports whether the caller has cancelled the call. An error of such a call says nothing
// about the service. A deadline that has passed does, and has another error.
func Cancelled(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }
