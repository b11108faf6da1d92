package throttle

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/sentinel"
)

// ErrRefused is matched, through [errors.Is], by every error with which a throttle refuses a call.
// Such an error also matches weir.ErrRefused, but not breaker.ErrOpen, since other calls are
// allowed at the same time. weir.RetryAfter returns 1s for such an error: after that time one call
// is allowed in any case.
var ErrRefused error = sentinel.RefusalError("throttle: refused")

// refusalError is the error of one throttle.
type refusalError struct{ name string }

func (e *refusalError) Error() string {
	return fmt.Sprintf("throttle %q refuses a share of the calls because too many fail", e.name)
}

// Is reports whether target is ErrRefused or weir.ErrRefused.
func (e *refusalError) Is(target error) bool {
	return target == ErrRefused || target == sentinel.ErrRefused
}

// RetryAfter returns how long to wait before retrying.
func (e *refusalError) RetryAfter() time.Duration { return alwaysAllowEvery }
