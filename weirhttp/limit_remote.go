package weirhttp

import (
	"context"

	"github.com/weir-go/weir/internal/remote"
	"github.com/weir-go/weir/limiter"
)

// askRemotes takes tokens from the Remote of each policy that has one, in order. If one refuses,
// returns an error or panics, the others get their tokens back.
func (d *decision) askRemotes(ctx context.Context) error {
	allowed := false
	defer func() {
		if !allowed {
			d.refundRemotes(ctx)
		}
	}()
	for i := range d.answers {
		a := &d.answers[i]
		if a.table != nil {
			continue
		}
		limit := a.quota.remote(a.key)
		result, granted, err := remote.Take(ctx, limit, d.cost)
		if err != nil {
			return &undecidedError{policy: a.quota.policy.Name, err: err}
		}
		a.reply, a.given = reply{Result: result, next: result.RetryAfter, room: !result.NoRoom}, true
		if m, ok := limit.(interface{ MaxKeys() int }); ok && result.NoRoom {
			a.remoteKeys = m.MaxKeys()
		}
		if !result.OK {
			return nil
		}
		if result.RetryAfter <= 0 { // otherwise shadow mode has taken nothing
			a.granted = granted
		}
	}
	allowed = true
	return nil
}

// refuseRemotes sets the replies of policies with a Remote to a final refusal, without calling the
// Remotes.
func (d *decision) refuseRemotes() {
	for i := range d.answers {
		if a := &d.answers[i]; a.table == nil {
			a.reply, a.given = reply{Result: limiter.Result{RetryAfter: limiter.Never}}, true
		}
	}
}

// refundRemotes gives back what remote limits have granted, even if the request was cancelled
// meanwhile.
func (d *decision) refundRemotes(ctx context.Context) {
	for i := range d.answers {
		d.answers[i].granted.Refund(ctx)
	}
}

// undecidedError wraps the error of a Remote that made no decision.
type undecidedError struct {
	policy string
	err    error
}

func (e *undecidedError) Error() string {
	return "weirhttp: policy \"" + e.policy + "\" came to no decision: " + e.err.Error()
}

func (e *undecidedError) Unwrap() error { return e.err }
