package breaker

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/window"
)

// Change is one change of state. It is a plain value.
type Change struct {
	Name   string        // of the breaker
	Key    string        // of a member of a Group, in words
	At     time.Time     // when the change was due: for HalfOpen the end of the cooldown
	From   State         // From and To are both Shadow where a breaker in shadow mode says
	To     State         // that it would open now
	Reason string        // in words, with the figures
	Counts window.Counts // the breaker's own calls, if they caused the change; else zero

	seq    uint64 // 1 for the breaker's first change, and one more each time
	origin string // what caused it
}

// The origins of changes.
const (
	byCalls        = "calls"
	bySharedCounts = "shared_counts"
	byClock        = "clock"
	byHand         = "hand"
)

const maxChanges = 64 // that may wait for a slow callback

// changes numbers the breaker's changes, and hands them to the callback: in their order, one at a
// time, and outside all locks. A goroutine that finds changes waiting, and no other delivering,
// delivers all there are. So a change that a callback causes is delivered after the callback has
// returned, by the goroutine that is delivering already.
type changes struct {
	tell    atomic.Pointer[func(Change)] // to nil for none
	dropped atomic.Int64

	mu     sync.Mutex
	seq    uint64
	queue  []Change
	atWork bool

	opened   bool // since the watchers were last woken
	watchers map[*func(opened bool)]struct{}
}

// post queues a change. The breaker's lock is held, which makes the order.
func (q *changes) post(c Change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.seq++
	c.seq = q.seq
	q.opened = q.opened || c.To == Open || c.To == ForcedOpen
	switch {
	case *q.tell.Load() == nil:
	case len(q.queue) == maxChanges:
		q.dropped.Add(1)
	default:
		q.queue = append(q.queue, c)
	}
}

// deliver calls back for every change that waits, unless another goroutine does so.
func (q *changes) deliver() {
	q.wake()
	for first := true; ; first = false {
		c, ok := q.next(first)
		if !ok {
			return
		}
		q.call(c)
	}
}

// next takes the oldest change, and begins or ends the work.
func (q *changes) next(begin bool) (c Change, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if begin && q.atWork {
		return c, false
	}
	q.atWork = len(q.queue) > 0
	if !q.atWork {
		q.queue = nil
		return c, false
	}
	c = q.queue[0]
	q.queue = q.queue[1:]
	return c, true
}

// call runs the callback. A panic in it would land on a caller that has nothing to
// do with it, and is recovered; a callback that ends its goroutine leaves the rest
// of the queue to be delivered on the way out.
func (q *changes) call(c Change) {
	tell := *q.tell.Load()
	if tell == nil {
		return
	}
	returned := false
	defer func() {
		if returned {
			return
		}
		q.dropped.Add(1)
		if r := recover(); r != nil {
			slog.Error("breaker: OnChange panicked", "breaker", c.Name, "from", c.From, "to", c.To, "reason", c.Reason, "panic", r)
			return
		}
		q.mu.Lock()
		q.atWork = false
		q.mu.Unlock()
		q.deliver()
	}()
	tell(c)
	returned = true
}
