package throttle

import (
	"context"
	"sync/atomic"

	"github.com/weir-go/weir/internal/verdict"
	"github.com/weir-go/weir/window"
)

// Permit is the right to make one call, and takes its result. Record a failure in a defer right
// after Allow: it counts only if nothing else was recorded. Then call Done when the call has ended.
// Never defer Done: its error would be evaluated at the defer statement.
//
// Do not copy a permit after its first use. Forgetting a permit is safe: the throttle misses one
// call. The zero Permit is used up.
type Permit struct {
	throttle *Throttle
	done     atomic.Bool
}

// Record records the outcome of the call and reports whether it counted: false if the permit is
// used up. Any goroutine may call it.
func (p *Permit) Record(o window.Outcome) bool {
	if !p.take() {
		return false
	}
	p.throttle.record(p.throttle.clock.Now(), o)
	return true
}

// Done records what a call that was made with ctx and has returned err says about the service, as
// Config.Classify decides, and reports whether it counted, as Record does. Call Done before you
// cancel ctx yourself: under a cancelled context errors are ignored.
func (p *Permit) Done(ctx context.Context, err error) bool {
	if !p.take() {
		return false
	}
	outcome := window.Ignored // until Classify has returned: it may panic
	defer func() { p.throttle.record(p.throttle.clock.Now(), outcome) }()
	outcome = verdict.On(ctx, err, p.throttle.config.Classify)
	return true
}

// take uses the permit up, and reports whether it was there to use.
func (p *Permit) take() bool {
	return p.throttle != nil && p.done.CompareAndSwap(false, true)
}
