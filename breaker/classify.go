package breaker

import (
	"context"
	"errors"

	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// Outcome is what a call says about the service behind the breaker.
type Outcome = window.Outcome

// The outcomes of a call.
const (
	Success = window.Success // the service answered as it should
	Failure = window.Failure // the service failed
	Ignored = window.Ignored // nothing can be said
)

// DefaultClassify is the verdict on an error where Config.Classify is not set:
//
//   - nil is a success,
//   - an error that matches stat.ErrRefused is ignored: an inner breaker or
//     limiter refused the call, so the service never saw it,
//   - all else is a failure, a deadline that passed among it.
func DefaultClassify(err error) Outcome {
	switch {
	case err == nil:
		return Success
	case errors.Is(err, stat.ErrRefused):
		return Ignored
	}
	return Failure
}

// Outcome returns the verdict on a call that was made with ctx and returned err:
// Ignored where the caller itself gave up, and what Config.Classify says otherwise.
// A deadline that passed is no giving up: a service that hangs until its callers'
// deadlines has failed.
func (b *Breaker) Outcome(ctx context.Context, err error) Outcome {
	if err != nil && gaveUp(ctx, err) {
		return Ignored
	}
	return b.classify(err)
}

// gaveUp reports whether err is the caller's own cancelling of ctx.
func gaveUp(ctx context.Context, err error) bool {
	return errors.Is(ctx.Err(), context.Canceled) &&
		(errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx)))
}
