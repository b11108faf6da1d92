package weirhttp

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// RefusedError is the error of a request that was not sent. It matches what Err matches:
// [weir.ErrRefused], and breaker.ErrOpen or limiter.ErrLimited; and [weir.RetryAfter] finds
// its wait, also in the [*net/url.Error] that an http.Client puts around it.
type RefusedError struct {
	Host string // as ByHost returns it
	Err  error  // the gate's: a *breaker.OpenError or a *limiter.LimitedError
}

func (e *RefusedError) Error() string {
	wait := weir.RetryAfter(e.Err)
	open, ok := errors.AsType[*breaker.OpenError](e.Err)
	if forced := ok && open.Until.IsZero(); forced || wait <= 0 || wait == limiter.Never {
		return fmt.Sprintf("weirhttp: %s is not called: %v", e.Host, e.Err)
	}
	return fmt.Sprintf("weirhttp: %s is not called for %v: %v", e.Host, wait.Round(time.Millisecond), e.Err)
}

// Unwrap returns Err.
func (e *RefusedError) Unwrap() error { return e.Err }
