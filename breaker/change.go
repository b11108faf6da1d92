package breaker

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/window"
)

// Change is one transition between states, as Config.OnChange gets it.
type Change struct {
	// Name is the name of the breaker.
	Name string
	// Key is the key of a member of a Group, as text.
	Key string
	// At is when the transition was due. For HalfOpen it is the end of the cooldown.
	At time.Time
	// From is the state that ended, and To the state that began. Both are Shadow if a breaker in
	// the state Shadow would have opened, and Closed if GroupConfig.MaxOpen prevented an opening.
	From, To State
	// Reason is the cause in words, with the numbers that led to it, such as "failure rate 57% of
	// 40 calls, limit 50%" or "the cooldown of 5s is over". Explain and OpenError.Reason say why
	// the breaker opened, also while it is half-open.
	Reason string
	// Counts are the calls that caused the transition. They are zero if calls did not cause it.
	Counts window.Counts
	// Margin says how many fewer failures or slow calls would not have opened the breaker, such as
	// "2 failures fewer in this window would not have opened it". It is empty if the number is not
	// known: see the package comment.
	Margin string
	// LastFailures are the last failures before a breaker opened because of its calls, the oldest
	// first. The errors of all calls that this opening refuses share the slice: do not change it.
	// See Config.KeepFailures.
	LastFailures []FailedCall

	seq    uint64 // 1 for the first transition of the breaker, and one more for each transition
	origin string // what caused the transition
	ctx    context.Context
}

// Context returns a context with the values of the context of the call whose result caused the
// transition, such as its trace. It is never cancelled. If no call caused the transition, or the
// call was recorded by Permit.Record, which has no context, Context returns context.Background.
// LogChanges logs with it.
func (c Change) Context() context.Context {
	if c.ctx == nil {
		return context.Background()
	}
	return context.WithoutCancel(c.ctx)
}

// The origins of transitions.
const (
	byCalls        = "calls"
	bySharedCounts = "shared_counts"
	byClock        = "clock"
	byHand         = "hand"
)

// maxQueued is how many changes may wait for a slow callback.
const maxQueued = 64

// changeQueue passes the changes of a breaker to its callback: in order, one at a time, and outside
// all locks. If a goroutine finds changes in the queue, and no other goroutine is delivering, it
// delivers all of them. So a change that a callback causes is delivered after that callback has
// returned.
type changeQueue struct {
	callback atomic.Pointer[func(Change)] // points to nil for none
	// of the call that is being judged under the lock of the breaker, or nil
	cause   context.Context
	dropped atomic.Int64

	mu         sync.Mutex
	seq        uint64
	queue      []Change
	delivering bool
	opened     bool // the breaker has opened since the watchers were last called
	watchers   map[*func(opened bool)]struct{}
}

// push queues a change. The lock of the breaker is held, so changes are in order.
func (q *changeQueue) push(c Change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.seq++
	c.seq = q.seq
	c.ctx = q.cause
	q.opened = q.opened || c.To == Open || c.To == ForcedOpen
	switch {
	case *q.callback.Load() == nil:
	case len(q.queue) == maxQueued:
		q.dropped.Add(1)
	default:
		q.queue = append(q.queue, c)
	}
}

// deliver calls the callback for every queued change, unless another goroutine is delivering.
func (q *changeQueue) deliver() {
	q.callWatchers()
	for c, ok := q.pop(true); ok; c, ok = q.pop(false) {
		q.call(c)
	}
}

// pop removes the oldest change. A goroutine begins to deliver with the first change and ends when
// there is none left.
func (q *changeQueue) pop(first bool) (c Change, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if first && q.delivering {
		return c, false
	}
	q.delivering = len(q.queue) > 0
	if !q.delivering {
		q.queue = nil
		return c, false
	}
	c = q.queue[0]
	q.queue = q.queue[1:]
	return c, true
}

// isBusy reports whether changes are being delivered or callers wait for the next opening.
func (q *changeQueue) isBusy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.delivering || len(q.queue) > 0 || len(q.watchers) > 0
}

// call calls the callback. It recovers a panic, because the panic would reach a caller that did
// not cause it. If the callback calls runtime.Goexit, call delivers the rest of the queue first.
func (q *changeQueue) call(c Change) {
	callback := *q.callback.Load()
	if callback == nil {
		return
	}
	returned := false
	defer func() {
		if returned {
			return
		}
		q.dropped.Add(1)
		if r := recover(); r != nil {
			c.Margin, c.LastFailures = "", nil // their texts were not meant for slog.Default
			slog.LogAttrs(c.Context(), slog.LevelError, "breaker: OnChange panicked", append(c.attrs(), slog.Any("panic", r))...)
			return
		}
		q.mu.Lock()
		q.delivering = false
		q.mu.Unlock()
		q.deliver()
	}()
	callback(c)
	returned = true
}
