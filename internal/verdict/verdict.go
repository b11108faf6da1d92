// Package verdict decides what a call says about the service behind a guard.
package verdict

import (
	"context"
	"errors"
)

// The outcomes, numbered as in package window.
const (
	success = iota
	failure
	ignored
	overloaded
)

// On returns the outcome of a call that was made with ctx and returned err. A nil classify
// treats every error as a failure.
//
// An error is ignored, and classify is not asked, if the caller has cancelled the call or an inner
// guard has refused it: such an error says nothing about the service. If the caller has cancelled a
// call that returned no error, classify is called, but a failure is ignored.
func On[O ~uint8](ctx context.Context, err error, classify func(error) O) O {
	var f Findings
	return Find(&f, ctx, err, classify)
}

// Find is On, and stores in f what it found in err.
//
//nolint:revive // f is written to, so it comes first
func Find[O ~uint8](f *Findings, ctx context.Context, err error, classify func(error) O) O {
	if err == nil {
		if classify == nil {
			return success
		}
		o := classify(nil)
		if (o == failure || o == overloaded) && cancelled(ctx) {
			return ignored
		}
		return o
	}
	if cancelled(ctx) {
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

// Unreturned returns the outcome of a call that panicked or called runtime.Goexit.
func Unreturned[O ~uint8](ctx context.Context) O {
	if cancelled(ctx) {
		return ignored
	}
	return failure
}

// cancelled reports whether the caller has cancelled the call. A deadline that has passed is not a
// cancellation.
func cancelled(ctx context.Context) bool {
	err := ctx.Err()
	return err != nil && errors.Is(err, context.Canceled)
}
