package inflight

import (
	"context"
	"errors"

	"github.com/weir-go/weir/internal/verdict"
	"github.com/weir-go/weir/window"
)

// ending is how a call has ended, as far as an adaptive limit is concerned.
type ending uint8

const (
	well ending = iota
	failed
	overloaded // the service has refused it because it has too many
	left       // its caller has cancelled it
	ignored    // it says nothing about the service
)

// endingOfCall returns the ending of a call that was made with ctx and returned err.
func endingOfCall(ctx context.Context, err error) ending {
	return endingOf(ctx, verdict.On[window.Outcome](ctx, err, nil))
}

// endingOf returns the ending of a call with an outcome. ctx is nil if it is not known.
func endingOf(ctx context.Context, o window.Outcome) ending {
	switch o {
	case window.Success:
		return well
	case window.Failure:
		return failed
	case window.Overloaded:
		return overloaded
	case window.Ignored:
		if ctx != nil && errors.Is(ctx.Err(), context.Canceled) {
			return left
		}
	}
	return ignored
}
