package breaker

import (
	"fmt"
	"strconv"
	"time"

	"github.com/weir-go/weir/internal/sentinel"
)

// ErrOpen is matched, through [errors.Is], by every error with which a breaker
// refuses a call. The error itself is an [*OpenError]. ErrOpen alone, as a wrapper may return
// it, matches weir.ErrRefused too.
var ErrOpen error = sentinel.RefusalError("breaker: open")

// OpenError says which breaker refused, why and until when. One is made for each
// opening and shared by all calls that it refuses: do not change it.
//
// It matches ErrOpen and weir.ErrRefused.
type OpenError struct {
	Name   string    // the breaker's
	Key    string    // that of a member of a Group, in words
	State  State     // Open; HalfOpen where all probes were out; ForcedOpen
	Reason string    // what opened it, such as "failure rate 57% of 40 calls, limit 50%"
	Until  time.Time // when it will let a probe through; at the latest, for HalfOpen; zero for ForcedOpen

	cooldown time.Duration // of the breaker
}

func (e *OpenError) Error() string {
	name := strconv.Quote(e.Name)
	if e.Key != "" {
		name += " for " + strconv.Quote(e.Key)
	}
	switch e.State {
	case HalfOpen:
		return fmt.Sprintf("breaker %s is half-open and all its probes are out (%s)", name, e.Reason)
	case ForcedOpen:
		return fmt.Sprintf("breaker %s is forced open", name)
	default:
		return fmt.Sprintf("breaker %s is open until %s: %s", name, e.Until.Format(time.TimeOnly), e.Reason)
	}
}

// Is reports whether the target is ErrOpen or weir.ErrRefused.
func (e *OpenError) Is(target error) bool { return target == ErrOpen || target == sentinel.ErrRefused }

// minRetry is the shortest wait that a refusal asks for, so that a caller that waits and retries
// does not spin.
const minRetry = time.Millisecond

// RetryAfter returns how long to wait before retrying: until Until by the real clock, or the
// cooldown if the breaker is forced open, which has no end that is known; at least 1ms.
func (e *OpenError) RetryAfter() time.Duration {
	if e.Until.IsZero() {
		return max(e.cooldown, minRetry)
	}
	return max(time.Until(e.Until), minRetry)
}
