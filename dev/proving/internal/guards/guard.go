package guards

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// guard adapts a library to the interface of the simulation.
type guard struct {
	call func(ctx context.Context, f func(context.Context) error) error
	// refusals are the errors that mean a refusal.
	refusals []error
	// retryAfter returns when a refused call may be tried again. It is nil if the library does not
	// say.
	retryAfter func(error) time.Duration
	openings   atomic.Int64
}

func (g *guard) Call(ctx context.Context, f func(context.Context) error) error { return g.call(ctx, f) }

func (g *guard) Refusal(err error) (time.Duration, bool) {
	for _, refusal := range g.refusals {
		if !errors.Is(err, refusal) {
			continue
		}
		if g.retryAfter == nil {
			return 0, true
		}
		return max(g.retryAfter(err), 0), true
	}
	return 0, false
}

func (g *guard) Openings() int { return int(g.openings.Load()) }

// stepped is a guard whose library has calls of two steps, and never waits.
type stepped struct {
	*guard
	begin func(ctx context.Context) (done func(error), err error)
}

func (g *stepped) Begin(ctx context.Context) (done func(error), err error) { return g.begin(ctx) }

// clientOf returns the client that a process belongs to.
func clientOf(s sim.Setting) sim.Client {
	process := s.Process
	for _, c := range s.World.Clients {
		if process -= max(c.Processes, 1); process < 0 {
			return c
		}
	}
	return sim.Client{}
}

// seedByClock moves the clock of the bubble, for libraries that seed their random numbers with the
// clock. It moves the clock by up to 1 µs, so that no two processes draw the same numbers, and so
// that the same seed gives the same numbers. If the clock is before the year 2100, seedByClock
// first moves it there. The reason is that a bubble begins in the year 2000, but go-zero counts its
// time from the real start of the program, and treats a negative time as no time.
func seedByClock(s sim.Setting) {
	const step = 7919 // a prime, so that seeds and processes rarely meet
	if wait := time.Until(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)); wait > 0 {
		<-time.After(wait)
	}
	<-time.After(time.Duration(1 + (s.Seed*step+uint64(s.Process))%1000))
}
