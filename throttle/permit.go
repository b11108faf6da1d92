package throttle

import (
	"context"
	"sync/atomic"

	"github.com/weir-go/weir/window"
)

// Permit is the right to make one call. The result of the call is recorded with it. Defer a Record
// of a failure right after Allow: that failure counts only if nothing else was recorded. Then call
// Done when the call has ended. Never defer Done, because Go evaluates its error at the defer
// statement.
//
// Do not copy a permit after its first use. Forgetting a permit is safe: the throttle misses one
// call. The zero Permit is used up.
type Permit struct {
	throttle *Throttle
	used     atomic.Bool
}

// Record records the outcome of the call and reports whether it counted, which is false if the
// permit is used up. Any goroutine may call Record.
func (p *Permit) Record(o window.Outcome) bool {
	if !p.use() {
		return false
	}
	p.throttle.record(p.throttle.now(), o)
	return true
}

// Done records the outcome of a call that was made with ctx and returned err, and reports whether
// it counted, as Record does. Config.Classify returns the outcome. Call Done before you cancel ctx:
// errors under a cancelled context are ignored.
func (p *Permit) Done(ctx context.Context, err error) bool {
	if !p.use() {
		return false
	}
	p.throttle.finish(ctx, err, true)
	return true
}

// use marks the permit as used and reports whether it was unused.
func (p *Permit) use() bool {
	return p.throttle != nil && p.used.CompareAndSwap(false, true)
}
