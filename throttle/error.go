package throttle

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/internal/sentinel"
)

// ErrRefused is matched, through [errors.Is], by every error with which a throttle refuses a call.
// Such an error also matches weir.ErrRefused. It does not match breaker.ErrOpen: nothing is open,
// and other calls are allowed at the same time. weir.RetryAfter of it is 1s, after which one call
// is allowed in any case.
var ErrRefused error = sentinel.RefusalError("throttle: refused")

// refusal is the error of one throttle.
type refusal struct{ name string }

func (e *refusal) Error() string {
	return fmt.Sprintf("throttle %q refuses a share of the calls, since too many fail", e.name)
}

// Is reports whether the target is ErrRefused or weir.ErrRefused.
func (e *refusal) Is(target error) bool { return target == ErrRefused || target == sentinel.ErrRefused }

// RetryAfter returns how long to wait before retrying.
func (e *refusal) RetryAfter() time.Duration { return passEvery }
