package gatehook

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/instrument"
)

// Slots are functions of bounds on calls in flight of type L, for calls with outcomes of type O.
type Slots[L, O any] struct {
	// New returns a bound that has a name and no statistics.
	New func(name string, limit int, adaptive bool) *L
	// Adapts reports whether the limit of l adapts.
	Adapts func(l *L) bool
	// Reconfigure changes a bound of New.
	Reconfigure func(l *L, limit int, adaptive bool)
	// Word returns the words for TryOccupy of a fixed bound of New. The words stay the same while
	// the bound is adaptive.
	Word func(l *L) (word *atomic.Uint64, limit *atomic.Uint32)
	// Occupy takes a slot if there is one and no caller waits. start is for End. If ok,
	// the call is allowed, and if held, it holds a slot; in shadow mode it may hold none. A refusal
	// is not counted.
	Occupy func(l *L) (start time.Duration, held, ok bool)
	// OccupyUncounted is like Occupy, but AtOnce does not count the call if the bound has no
	// statistics.
	OccupyUncounted func(l *L) (start time.Duration, held, ok bool)
	// Wait is OccupyUncounted that waits for a slot for at most maxWait, and counts the outcome.
	Wait func(ctx context.Context, l *L, maxWait time.Duration) (start time.Duration, held bool, err error)
	// NameMaxWait makes the text of a new error of Wait say that the MaxWait of a gate was too
	// short, if it was.
	NameMaxWait func(fullError error, maxWait time.Duration)
	// Refuse counts a refusal and returns its error, which has the name if the bound has none.
	Refuse func(l *L, name string) error
	// IsFull reports whether Occupy would refuse a call. An adaptive bound notices the attempt.
	IsFull func(l *L) bool
	// End releases the slot of a call. start is that of Occupy or Wait, or Untimed for a call of
	// TryOccupy.
	End func(l *L, start time.Duration, e Ending[O])
	// Serve gives the slots that are free to the callers that wait.
	Serve func(l *L)
	// Abandon releases the slot of a call whose end was forgotten. Any goroutine of the runtime may
	// call it, also from outside the testing/synctest bubble of l.
	Abandon func(l *L)
	// Bound returns the state of l.
	Bound func(l *L) instrument.Bound
	// AtOnce returns the number of calls that Occupy has given a slot.
	AtOnce func(l *L) int64
}

// The lower bits of the word of a bound hold the number of calls in flight. While callers wait,
// this part is greater than any limit. The other bits hold the number of calls that got a slot at
// once.
const (
	SlotBits = 22
	LowBits  = 1<<SlotBits - 1
	Waiting  = 1 << (SlotBits - 1) // set while callers wait
	oneCall  = 1<<SlotBits + 1
)

// TryOccupy is like Occupy, but works only for a bound of New. The compiler can inline it. It may
// fail although there is a slot.
func TryOccupy(word *atomic.Uint64, limit *atomic.Uint32) bool {
	old := word.Load()
	n := uint32(old & LowBits)
	return n < limit.Load() && word.CompareAndSwap(old, old+oneCall)
}

// Vacate releases the slot of TryOccupy, and reports whether callers wait, whom Serve serves. The
// compiler can inline it.
func Vacate(word *atomic.Uint64) (waiters bool) { return word.Add(^uint64(0))&Waiting != 0 }

// Untimed is the start of a call whose start is not known.
const Untimed time.Duration = -1

// InFlight holds the Slots of package inflight.
var InFlight any

// IsBusy reports whether calls of a gate in a group hold slots. Package weir sets it. The value
// stored at the Place of a breaker is its gate.
var IsBusy func(gate any) bool
