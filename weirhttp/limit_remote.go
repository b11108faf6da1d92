package weirhttp

import (
	"context"
	"time"

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
		a.asked = time.Now()
		result, err := limit.Take(ctx, d.cost)
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
		if result.RetryAfter <= 0 {
			// above 0, shadow mode has allowed a refused request and taken nothing
			a.remote = limit
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

// refundRemotes gives tokens back to the remote limits that can take them, even if the request was
// cancelled meanwhile.
func (d *decision) refundRemotes(ctx context.Context) {
	for i := range d.answers {
		if r, ok := d.answers[i].remote.(interface {
			Refund(ctx context.Context, taken time.Time, n int) error
		}); ok {
			// an error only means that tokens are lost
			_ = r.Refund(context.WithoutCancel(ctx), d.answers[i].asked, d.cost)
		}
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
