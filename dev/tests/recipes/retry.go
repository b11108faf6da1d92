package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

//readme:retry-outside

// Retry makes up to four attempts. Each attempt asks the gate, and waits as long as its error says.
func Retry[T any](ctx context.Context, gate *weir.Gate, fn func(context.Context) (T, error)) (T, error) {
	made, failure := 0, error(nil) // attempts that the gate allowed, and the error of the last one
	return backoff.Retry(ctx, func() (T, error) {
		v, err := weir.Do(weir.WithAttempt(ctx, made), gate, fn)
		if _, ok := errors.AsType[*weir.RetryError](err); ok {
			return v, backoff.Permanent(cmp.Or(failure, err))
		}
		if !errors.Is(err, weir.ErrRefused) {
			made, failure = made+1, err
		}
		switch wait := weir.RetryAfter(err); {
		case wait == limiter.Never:
			return v, backoff.Permanent(err)
		case wait > 0:
			return v, fmt.Errorf("%w: %w", &backoff.RetryAfterError{Duration: wait}, err)
		}
		return v, err
	}, backoff.WithMaxTries(4), backoff.WithMaxElapsedTime(10*time.Second))
}

//readme:end

//readme:retry-http

// NewRetryingClient returns a client that retries failed requests, and none that the gate refused.
func NewRetryingClient(gate func(*http.Request) *weir.Gate, base http.RoundTripper) *retryablehttp.Client {
	client := retryablehttp.NewClient()
	base = struct{ http.RoundTripper }{base} // hides CloseIdleConnections, which each error calls
	client.HTTPClient.Transport = weirhttp.NewTransport(gate, weirhttp.TransportConfig{Base: base})
	client.RequestLogHook = numberAttempt
	client.CheckRetry = checkRetry
	client.Backoff = func(least, most time.Duration, attempt int, resp *http.Response) time.Duration {
		// After a Retry-After, the gate holds for up to a tenth longer.
		return retryablehttp.DefaultBackoff(least, most, attempt, resp) * 11 / 10
	}
	return client
}

// failureKey is the key of the error of the last attempt in the context of a request.
type failureKey struct{}

// numberAttempt tells the gate which requests are retries. PrepareRetry is called too late for it:
// the first attempt needs a place for its error.
func numberAttempt(_ retryablehttp.Logger, req *http.Request, attempt int) {
	ctx := weir.WithAttempt(req.Context(), attempt)
	if attempt == 0 {
		ctx = context.WithValue(ctx, failureKey{}, new(error))
	}
	*req = *req.WithContext(ctx)
}

// checkRetry reports whether an attempt is retried. If the retry budget is used up, its error is
// that of the attempt before.
func checkRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	failure := ctx.Value(failureKey{}).(*error)
	if _, ok := errors.AsType[*weir.RetryError](err); ok {
		return false, cmp.Or(*failure, err)
	}
	if errors.Is(err, weir.ErrRefused) {
		return false, err
	}
	retry, why := retryablehttp.ErrorPropagatedRetryPolicy(ctx, resp, err)
	*failure = cmp.Or(why, err)
	return retry, why
}

//readme:end

//readme:retry-inside

// RetryInside makes up to four attempts, which the gate counts as one call.
func RetryInside[T any](ctx context.Context, gate *weir.Gate, fn func(context.Context) (T, error)) (T, error) {
	return weir.Do(ctx, gate, func(ctx context.Context) (T, error) {
		return backoff.Retry(ctx, func() (T, error) { return fn(ctx) }, backoff.WithMaxTries(4))
	})
}

//readme:end
