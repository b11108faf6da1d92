package sim

import (
	"context"
	"time"
)

// Guard decides which calls of one process reach the service. All processes of a client have a
// guard of their own. If it has a method Close(), Run calls it at the end: all goroutines of the
// guard must have ended then.
type Guard interface {
	// Call calls f once, unless the guard refuses the call. It returns the error of f as it is, so
	// it returns nil only if f did. Several goroutines use it at the same time.
	Call(ctx context.Context, f func(context.Context) error) error
	// Refusal reports whether err, which Call returned, is a refusal of the guard, and when the
	// guard says that it is worth calling again. The time is 0 if the guard does not say.
	Refusal(err error) (retryAfter time.Duration, refused bool)
	// Openings returns how often the guard has begun to refuse all calls. It is 0 for a guard
	// without that state.
	Openings() int
}

// Stepped is a guard that never waits, and whose calls have two steps. It needs no goroutine for
// each attempt, so that a run takes half of the time. Its figures are the same.
type Stepped interface {
	Guard
	// Begin decides about a call, as Call does. If it returns no error, done is called once, with
	// the error of the call.
	Begin(ctx context.Context) (done func(error), err error)
}

// Maker is one row of the tables: a library with one configuration.
type Maker struct {
	// Name is short and unique, such as "gobreaker" or "gobreaker, tuned".
	Name string
	// Config says in words what is configured, and why.
	Config string
	// Draws is true for a guard that draws random numbers of its own. For such a guard, the same
	// seed does not always give the same figures.
	Draws bool
	// Retries is true for a guard that bounds retries. It has rows only in scenarios whose callers
	// retry and give up in the end. Where callers obey refusals until they are answered, it would
	// tell them never to try again.
	Retries bool
	// Peer is true for another library, false for none, for weir and for the oracle.
	Peer bool
	// New returns a new guard for one process. It is called in the bubble. The simulation starts
	// when all guards are made.
	New func(Setting) Guard
}

// Setting is where a guard is put.
type Setting struct {
	World   World
	Process int // counted from 0 over all clients
	Seed    uint64

	run *run // for the oracle
}
