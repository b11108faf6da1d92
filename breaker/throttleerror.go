package breaker

import (
	"fmt"

	"github.com/weir-go/weir/internal/sentinel"
)

// ErrThrottled is matched, through [errors.Is], by every error with which a throttle
// refuses a call. The error itself is a [*ThrottledError].
var ErrThrottled error = refusalError("breaker: throttled")

// ThrottledError says which throttle refused. One is shared by all calls that it
// refuses: do not change it.
//
// It matches ErrThrottled and weir.ErrRefused. It does not match ErrOpen: nothing is
// open, other calls pass at the same time, and there is no moment to wait for.
type ThrottledError struct {
	Name string // the throttle's
}

func (e *ThrottledError) Error() string {
	return fmt.Sprintf("throttle %q refuses a share of the calls, since too many fail", e.Name)
}

// Is reports whether the target is ErrThrottled or weir.ErrRefused.
func (e *ThrottledError) Is(target error) bool {
	return target == ErrThrottled || target == sentinel.ErrRefused
}
