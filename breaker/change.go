package breaker

import (
	"cmp"
	"context"
	"log"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/waiting"
	"github.com/weir-go/weir/stat/view"
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
	// known: see docs/breaker.md.
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
// transition, such as its trace. It is never cancelled. If no call caused the transition, Context
// returns context.Background. breakerlog.Changes logs with it.
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
	of *Breaker
	// of the call that is being judged under the lock of the breaker, or nil
	cause   context.Context
	dropped atomic.Int64

	mu         sync.Mutex
	seq        uint64
	queue      []Change
	delivering bool
	opened     bool // the breaker has opened since the watchers were last called
	watchers   map[waiting.Interrupter]struct{}
}

// changes returns the queue of b, which is also that of its shadow.
func (b *Breaker) changes() *changeQueue { return &cmp.Or(b.shadowOf, b).rareParts().changes }

// deliver calls the callback for every change of b.
func (b *Breaker) deliver() {
	if r := cmp.Or(b.shadowOf, b).rare.Load(); r != nil {
		r.changes.deliver()
	}
}

// callback returns Config.OnChange, nil for none.
func (q *changeQueue) callback() func(Change) { return q.of.regime.Load().rules.config.OnChange }

// push queues a change. The lock of the breaker is held, so changes are in order.
func (q *changeQueue) push(c Change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.seq++
	c.seq = q.seq
	c.ctx = q.cause
	q.opened = q.opened || c.To == Open || c.To == ForcedOpen
	switch {
	case q.callback() == nil:
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
func (r *rareParts) isBusy() bool {
	if r == nil {
		return false
	}
	q := &r.changes
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.delivering || len(q.queue) > 0 || len(q.watchers) > 0
}

// call calls the callback. It recovers a panic, because the panic would reach a caller that did
// not cause it. If the callback calls runtime.Goexit, call delivers the rest of the queue first.
func (q *changeQueue) call(c Change) {
	callback := q.callback()
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
			log.Printf("breaker: OnChange of %s panicked at the change from %s to %s: %v", nameAndKey(c.Name, c.Key), c.From, c.To, r) //nolint:forbidigo // log/slog would be linked into every program with a breaker
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

// callWatchers interrupts all watchers if the breaker has opened since the last call.
func (q *changeQueue) callWatchers() {
	q.mu.Lock()
	var all map[waiting.Interrupter]struct{}
	if q.opened {
		all = q.watchers
		q.watchers, q.opened = nil, false
	}
	q.mu.Unlock()
	for w := range all {
		w.Interrupt(waiting.Opened)
	}
}

// maxIncidents is how many ended incidents a breaker remembers.
const maxIncidents = 8

// incidents are the spans of time from the opening of a breaker until calls passed as usual again.
// They never change: a transition makes new ones. Only openings and closings cost anything, and a
// breaker that never opened has none.
type incidents struct {
	began    time.Duration   // of the current incident
	openings int             // of the current incident; 0 for none
	cause    string          // of its first opening
	past     []view.Incident // the ended ones, the oldest first
}

// afterTransition returns the incidents after a transition from phase p at the given time. i is nil
// before the first opening.
func (i *incidents) afterTransition(c *Change, p *regime, at time.Duration, date func(time.Duration) time.Time) *incidents {
	if i == nil && p.passes != allCalls { // it began in an override
		i = &incidents{began: p.since, openings: 1, cause: p.forcedFor}
	}
	trips, tripped := c.To.behavior().passes != allCalls, i != nil && i.openings > 0
	switch {
	case trips && !tripped:
		next := &incidents{began: at, openings: 1, cause: p.causeOf(c)}
		if i != nil {
			next.past = i.past
		}
		return next
	case c.To == Open || c.To == ForcedOpen:
		next := *i
		next.openings++
		return &next
	case !trips && tripped:
		ended := view.Incident{Began: date(i.began), Ended: date(max(at, i.began)), Openings: i.openings, Cause: i.cause}
		kept := i.past[max(len(i.past)-maxIncidents+1, 0):]
		return &incidents{past: append(slices.Clip(slices.Clone(kept)), ended)}
	}
	return i
}

// causeOf returns why an incident begins with a transition from p. If the transition ends an
// override, the cause is the reason why the breaker has opened underneath.
func (p *regime) causeOf(c *Change) string {
	if p.under != nil && !c.To.isOverride() {
		return p.under.reason
	}
	return c.Reason
}

// allIncidents returns the last incidents. If the last one has not ended, it is the present one.
func (p *regime) allIncidents(date func(time.Duration) time.Time) (all []view.Incident) {
	i := p.incidents
	if i != nil {
		all = i.past
	}
	switch {
	case p.passes == allCalls:
		return all
	case i != nil && i.openings > 0:
		return append(slices.Clip(all), view.Incident{Began: date(i.began), Openings: i.openings, Cause: i.cause})
	default: // it began in an override
		return append(slices.Clip(all), view.Incident{Began: date(p.since), Openings: 1, Cause: p.forcedFor})
	}
}
