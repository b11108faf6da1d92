package weirhttp

import (
	"context"

	"github.com/weir-go/weir/limiter"
)

// askRemotes asks the policies with a Remote one after the other. If one refuses, fails to decide or
// panics, the others get back what they gave.
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
		result, err := limit.Take(ctx, d.cost)
		if err != nil {
			return &noDecisionError{policy: a.quota.policy.Name, err: err}
		}
		a.reply, a.given = reply{Result: result, next: result.RetryAfter, room: true}, true
		if !result.OK {
			return nil
		}
		if result.RetryAfter <= 0 { // otherwise it is the shadow of a refusal, which has taken nothing
			a.remote = limit
		}
	}
	allowed = true
	return nil
}

// refuseRemotes has the policies with a Remote refuse a request that can never be allowed, unasked.
func (d *decision) refuseRemotes() {
	for i := range d.answers {
		if a := &d.answers[i]; a.table == nil {
			a.reply, a.given = reply{Result: limiter.Result{RetryAfter: limiter.Never}}, true
		}
	}
}

// refundRemotes gives back what was taken from remote limits, if they can take it back. The request may
// have been cancelled meanwhile.
func (d *decision) refundRemotes(ctx context.Context) {
	for i := range d.answers {
		if r, ok := d.answers[i].remote.(interface {
			Refund(ctx context.Context, n int) error
		}); ok {
			_ = r.Refund(context.WithoutCancel(ctx), d.cost) // a token that is lost errs on the strict side
		}
	}
}

// noDecisionError is the error of a Remote.
type noDecisionError struct {
	policy string
	err    error
}

func (e *noDecisionError) Error() string {
	return "weirhttp: policy \"" + e.policy + "\" came to no decision: " + e.err.Error()
}

func (e *noDecisionError) Unwrap() error { return e.err }
