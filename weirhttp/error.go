package weirhttp

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// RefusedError is the error of a request that was not sent. It matches what Err matches:
// weir.ErrRefused, and breaker.ErrOpen, limiter.ErrLimited or inflight.ErrFull. [weir.RetryAfter]
// returns its wait, also for the [*net/url.Error] that an http.Client returns.
type RefusedError struct {
	// Host is the host of the request as ByHost returns it.
	Host string
	// Err is the error of the gate, such as a *breaker.OpenError or a *limiter.LimitedError.
	Err error
}

func (e *RefusedError) Error() string {
	wait := knownWait(e.Err, weir.RetryAfter(e.Err))
	open, ok := errors.AsType[*breaker.OpenError](e.Err)
	if forced := ok && open.State == breaker.ForcedOpen; forced || wait <= 0 || wait == limiter.Never {
		return fmt.Sprintf("weirhttp: %s is not called: %v", e.Host, e.Err)
	}
	return fmt.Sprintf("weirhttp: %s is not called for %v: %v", e.Host, wait.Round(time.Millisecond), e.Err)
}

// Unwrap returns Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// statusError is the error that a breaker records for a response that counts as a failure.
type statusError int

func (e statusError) Error() string {
	return fmt.Sprintf("status %d %s", int(e), http.StatusText(int(e)))
}
