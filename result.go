package weir

import (
	"context"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/verdict"
)

// DoResult is [Do] for a function whose value also says whether the service failed, such as a
// response with a status. judge returns the outcome; it takes the place of breaker.Config.Classify.
// Like Classify, it is not called for a call that the caller cancelled or that another guard
// refused.
func DoResult[T any](ctx context.Context, g *Gate, fn func(context.Context) (T, error), judge func(T, error) breaker.Outcome) (v T, err error) {
	if fn == nil || judge == nil {
		panic(nilFunctionText)
	}
	var permit breaker.Permit
	if err = g.acquire(ctx, &permit); err != nil {
		return v, err
	}
	returned, outcome := false, breaker.Ignored // recorded if judge panics
	defer func() {
		if !returned {
			permit.Record(verdict.Unreturned[breaker.Outcome](ctx))
			return
		}
		permit.DoneAs(ctx, err, outcome)
	}()
	v, err = fn(ctx)
	returned = true
	var f verdict.Findings
	outcome = verdict.Find(&f, ctx, err, func(err error) breaker.Outcome { return judge(v, err) })
	if outcome.Failed() && f.After > 0 {
		permit.SetRetryAfter(f.After)
	}
	return v, err
}
