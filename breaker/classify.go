package breaker

import (
	"context"
	"errors"
	"slices"

	"github.com/weir-go/weir/internal/verdict"
	"github.com/weir-go/weir/window"
)

// Outcome classifies the result of a call: whether it shows the service behind the breaker to be
// healthy.
type Outcome = window.Outcome

// The outcomes of a call.
const (
	Success = window.Success // the service answered as expected
	Failure = window.Failure // the service failed
	Ignored = window.Ignored // the call says nothing about the service
	// Overloaded is a failure: the service has refused the call because it has too many.
	Overloaded = window.Overloaded
)

// DefaultClassify classifies errors if Config.Classify is not set:
//
//   - nil is a success.
//   - An error that matches weir.ErrRefused is ignored: an inner breaker, throttle or limiter
//     refused the call, so the service never saw it.
//   - Every other error is a failure, including a deadline that has passed. The breaker ignores
//     some failures after a deadline all the same: see docs/breaker.md.
func DefaultClassify(err error) Outcome {
	return verdict.On[Outcome](context.Background(), err, nil)
}

// Classifier returns the outcome of a call that returned the given error or nil. Use it as
// Config.Classify. Accept, Ignore and FailOn return a Classifier. Its methods add further errors:
//
//	Classify: breaker.Accept(sql.ErrNoRows).Ignore(context.DeadlineExceeded)
//
// If an error matches errors of several methods, the method that was called last decides. Any
// function can be extended:
//
//	Classify: breaker.Classifier(weirgrpc.DefaultClassify).Accept(errNotFound)
type Classifier func(err error) Outcome

// Accept returns a Classifier for which errors that match one of errs are successes. Use it for
// errors of a service that works, such as "not found". DefaultClassify classifies all other errors.
func Accept(errs ...error) Classifier { return Classifier(DefaultClassify).Accept(errs...) }

// Ignore returns a Classifier that ignores errors that match one of errs. DefaultClassify
// classifies all other errors.
func Ignore(errs ...error) Classifier { return Classifier(DefaultClassify).Ignore(errs...) }

// FailOn returns a Classifier for which errors that match one of errs are failures. Refusals are
// ignored, and all other errors are successes.
func FailOn(errs ...error) Classifier {
	errs = slices.Clone(errs)
	return func(err error) Outcome {
		o := DefaultClassify(err)
		if o.Failed() && !isAny(err, errs) {
			return Success
		}
		return o
	}
}

// Accept returns a Classifier for which errors that match one of errs are successes. c classifies
// all other errors.
func (c Classifier) Accept(errs ...error) Classifier { return c.except(errs, Success) }

// Ignore returns a Classifier that ignores errors that match one of errs. c classifies all other
// errors.
func (c Classifier) Ignore(errs ...error) Classifier { return c.except(errs, Ignored) }

func (c Classifier) except(errs []error, o Outcome) Classifier {
	if c == nil {
		c = DefaultClassify
	}
	errs = slices.Clone(errs)
	return func(err error) Outcome {
		if isAny(err, errs) {
			return o
		}
		return c(err)
	}
}

func isAny(err error, targets []error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}
