package breaker

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/window"
)

// Change is one change of state. It is a plain value.
type Change struct {
	Seq    uint64        // 1 for the breaker's first change, and one more each time
	At     time.Time     // when the change was due: for HalfOpen the end of the cooldown
	From   State         //
	To     State         //
	Reason string        // in words, with the figures
	Counts window.Counts // what the change was judged by
}

func (c Change) String() string { return fmt.Sprintf("%s to %s: %s", c.From, c.To, c.Reason) }

// maxChanges is how many changes may wait for a callback that is slow.
const maxChanges = 64

// changes hands the breaker's changes to its callback: in their order, one at a
// time, and outside all locks. Whoever finds changes waiting and nobody at work
// delivers all there are, so a change that a callback causes is delivered after it
// has returned, by the goroutine that is delivering already.
type changes struct {
	tell    func(Change) // nil for none
	dropped atomic.Int64

	mu     sync.Mutex
	queue  []Change
	atWork bool
}

// post queues a change. The breaker's lock is held, which makes the order.
func (q *changes) post(c Change) {
	if q.tell == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == maxChanges {
		q.dropped.Add(1)
		return
	}
	q.queue = append(q.queue, c)
}

// deliver calls back for every change that waits, unless another goroutine does so.
func (q *changes) deliver() {
	if q.tell == nil {
		return
	}
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
	returned := false
	defer func() {
		if returned {
			return
		}
		q.dropped.Add(1)
		if r := recover(); r != nil {
			slog.Error("breaker: OnChange panicked", "change", c.String(), "panic", r)
			return
		}
		q.mu.Lock()
		q.atWork = false
		q.mu.Unlock()
		q.deliver()
	}()
	q.tell(c)
	returned = true
}
