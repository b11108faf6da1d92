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
	left    // its caller has cancelled it
	ignored // it says nothing about the service
)

// endingOfCall returns the ending of a call that was made with ctx and returned err.
func endingOfCall(ctx context.Context, err error) ending {
	e := endingOfOutcome(verdict.On[window.Outcome](ctx, err, nil))
	if e == ignored && errors.Is(ctx.Err(), context.Canceled) {
		return left
	}
	return e
}

func endingOfOutcome(o window.Outcome) ending {
	switch o {
	case window.Success:
		return well
	case window.Failure, window.Overloaded:
		return failed
	case window.Ignored:
	}
	return ignored
}
