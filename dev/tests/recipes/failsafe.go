package recipes

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"
	"github.com/failsafe-go/failsafe-go/retrypolicy"

	"github.com/weir-go/weir"
)

//readme:failsafe-retry

// FailsafeRetry makes up to four attempts, and none after one that the gate refused.
func FailsafeRetry[T any](ctx context.Context, gate *weir.Gate, fn func(context.Context) (T, error)) (T, error) {
	retries := retrypolicy.NewBuilder[T]().WithMaxRetries(3).ReturnLastFailure().
		WithBackoff(100*time.Millisecond, time.Second).WithJitterFactor(0.3).
		AbortOnErrors(weir.ErrRefused).Build()
	var failure error // of the attempt before
	v, err := failsafe.With(retries).WithContext(ctx).GetWithExecution(func(x failsafe.Execution[T]) (T, error) {
		failure = x.LastError()
		return weir.Do(weir.WithAttempt(x.Context(), x.Attempts()-1), gate, fn)
	})
	if _, ok := errors.AsType[*weir.RetryError](err); ok {
		return v, cmp.Or(failure, err)
	}
	return v, err
}

//readme:end

//readme:failsafe-hedge

// FailsafeHedge calls fn a second time if the first call takes longer than the delay.
func FailsafeHedge[T any](ctx context.Context, gate *weir.Gate, delay time.Duration, fn func(context.Context) (T, error)) (T, error) {
	hedge := hedgepolicy.NewBuilderWithDelay[T](delay).CancelIf(func(_ T, err error) bool {
		_, refused := errors.AsType[*weir.RetryError](err) // the first call goes on
		return !refused
	}).Build()
	return failsafe.With(hedge).WithContext(ctx).GetWithExecution(func(x failsafe.Execution[T]) (T, error) {
		return weir.Do(weir.WithAttempt(x.Context(), x.Attempts()-1), gate, fn)
	})
}

//readme:end
