package breaker

import (
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir/stat"
)

// ErrOpen is matched, through [errors.Is], by every error with which a breaker
// refuses a call. The error itself is an [*OpenError].
var ErrOpen = errors.New("breaker: open")

// OpenError says which breaker refused, why and until when. One is made for each
// opening and shared by all calls that it refuses: do not change it.
//
// It matches ErrOpen and stat.ErrRefused.
type OpenError struct {
	Name   string    // the breaker's
	State  State     // Open; HalfOpen where all probes were out; ForcedOpen
	Reason string    // what opened it, such as "failure rate 57% of 40 calls, limit 50%"
	Until  time.Time // when it will let a probe through; at the latest, for HalfOpen; zero for ForcedOpen
}

func (e *OpenError) Error() string {
	switch e.State {
	case HalfOpen:
		return fmt.Sprintf("breaker %q is half-open and all its probes are out (%s)", e.Name, e.Reason)
	case ForcedOpen:
		return fmt.Sprintf("breaker %q is forced open", e.Name)
	default:
		return fmt.Sprintf("breaker %q is open until %s: %s", e.Name, e.Until.Format(time.TimeOnly), e.Reason)
	}
}

// Is reports whether the target is ErrOpen or stat.ErrRefused.
func (e *OpenError) Is(target error) bool { return target == ErrOpen || target == stat.ErrRefused }

// RetryAfter returns how long it is until Until by the real clock, and 0 where
// that has passed or is not known.
func (e *OpenError) RetryAfter() time.Duration { return max(time.Until(e.Until), 0) }
