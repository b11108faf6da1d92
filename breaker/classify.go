package breaker

import (
	"context"
	"errors"

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
//   - an error that matches weir.ErrRefused is ignored: an inner breaker or
//     limiter refused the call, so the service never saw it. So is one that joins a
//     refusal and a failure: where calls of several services are guarded as one, give
//     each its own breaker, or judge the parts in Config.Classify,
//   - all else is a failure, a deadline that passed among it.
func DefaultClassify(err error) Outcome {
	if err == nil {
		return Success
	}
	var f findings
	f.search(err)
	return f.outcome()
}

// Ignore returns a Config.Classify that ignores the given errors, wrapped or not,
// and leaves the rest to DefaultClassify.
func Ignore(errs ...error) func(error) Outcome { return except(Ignored, errs) }

// Accept returns a Config.Classify to which the given errors, wrapped or not, are
// successes, and which leaves the rest to DefaultClassify. A service that says "not
// found" has done its work.
func Accept(errs ...error) func(error) Outcome { return except(Success, errs) }

// FailOn returns a Config.Classify to which the given errors, wrapped or not, are
// failures, and all others successes, but for refusals, which are ignored.
func FailOn(errs ...error) func(error) Outcome {
	return func(err error) Outcome {
		o := DefaultClassify(err)
		if o == Failure && !isAny(err, errs) {
			return Success
		}
		return o
	}
}

func except(o Outcome, errs []error) func(error) Outcome {
	return func(err error) Outcome {
		if isAny(err, errs) {
			return o
		}
		return DefaultClassify(err)
	}
}

func isAny(err error, targets []error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// Outcome returns the verdict on a call that was made with ctx and returned err. If the
// caller has cancelled ctx, an error is Ignored, however it is worded and before
// Config.Classify is asked: it says nothing about the service. A result without an error
// still counts then if it is a success, since the service has answered; if Classify takes it
// for a failure it is Ignored. In all other cases the verdict is that of Config.Classify. A
// deadline that has passed is no cancellation: a service that hangs until its callers'
// deadlines has failed.
//
// Calls of a group that is cancelled with the first failure, as those of an errgroup, count
// until then. The others are ignored, whatever they return: to judge all, give each call a
// context that the group does not cancel.
func (b *Breaker) Outcome(ctx context.Context, err error) Outcome {
	return verdictOn(ctx, err, b.rules().config.Classify)
}

// verdictOn is the verdict on a call; a classifier of nil is DefaultClassify.
func verdictOn(ctx context.Context, err error, classify func(error) Outcome) Outcome {
	var f findings
	return f.verdict(ctx, err, classify)
}

// verdict is verdictOn that keeps what it finds in the error of a failure.
func (f *findings) verdict(ctx context.Context, err error, classify func(error) Outcome) Outcome {
	switch {
	case err != nil && cancelled(ctx):
		return Ignored
	case classify == nil && err == nil:
		return Success
	case classify == nil:
		f.search(err)
		return f.outcome()
	}
	o := classify(err)
	if o == Failure {
		if err == nil && cancelled(ctx) {
			return Ignored
		}
		f.search(err)
	}
	return o
}

// unreturned is the verdict on a call that panicked or ended its goroutine.
func unreturned(ctx context.Context) Outcome {
	if cancelled(ctx) {
		return Ignored
	}
	return Failure
}

// cancelled reports whether the caller has cancelled the call. What such a call fails with is
// no evidence: a deadline, which is, has another error.
func cancelled(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }
