package breaker

import (
	"context"
	"errors"
	"slices"

	"github.com/weir-go/weir/internal/verdict"
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

// DefaultClassify classifies an error where Config.Classify is not set:
//
//   - nil is a success,
//   - an error that matches weir.ErrRefused is ignored: an inner breaker, throttle or limiter
//     refused the call, so the service never saw it,
//   - any other error is a failure, including a deadline that has passed.
func DefaultClassify(err error) Outcome {
	return verdict.On[Outcome](context.Background(), err, nil)
}

// Classifier returns what a call that returned the given error or nil says about the service. Use it
// as Config.Classify. Accept, Ignore and FailOn return one, and its methods name further errors:
//
//	Classify: breaker.Accept(sql.ErrNoRows).Ignore(context.DeadlineExceeded)
//
// If an error matches several of them, the last one decides. Any function can be extended:
//
//	Classify: breaker.Classifier(weirgrpc.DefaultClassify).Accept(errNotFound)
type Classifier func(err error) Outcome

// Accept returns a Classifier that takes errors that match one of errs for successes, and leaves
// the rest to DefaultClassify. A service that answers "not found" has done its work.
func Accept(errs ...error) Classifier { return Classifier(DefaultClassify).Accept(errs...) }

// Ignore returns a Classifier that ignores errors that match one of errs, and leaves the rest to
// DefaultClassify.
func Ignore(errs ...error) Classifier { return Classifier(DefaultClassify).Ignore(errs...) }

// FailOn returns a Classifier that takes errors that match one of errs for failures, and all others
// for successes, except refusals, which are ignored.
func FailOn(errs ...error) Classifier {
	errs = slices.Clone(errs)
	return func(err error) Outcome {
		o := DefaultClassify(err)
		if o == Failure && !isAny(err, errs) {
			return Success
		}
		return o
	}
}

// Accept returns a Classifier that takes errors that match one of errs for successes, and leaves
// the rest to c.
func (c Classifier) Accept(errs ...error) Classifier { return c.except(Success, errs) }

// Ignore returns a Classifier that ignores errors that match one of errs, and leaves the rest to c.
func (c Classifier) Ignore(errs ...error) Classifier { return c.except(Ignored, errs) }

func (c Classifier) except(o Outcome, errs []error) Classifier {
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
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}
