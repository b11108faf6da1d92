package breaker

import (
	"fmt"
	"strconv"
	"time"

	"github.com/weir-go/weir/internal/sentinel"
)

// ErrOpen is the error that every refusal of a breaker matches, through [errors.Is]. The refusal
// error itself is an [*OpenError]. ErrOpen matches weir.ErrRefused too.
var ErrOpen error = sentinel.RefusalError("breaker: open")

// OpenError is the error of a refused call. It matches ErrOpen and weir.ErrRefused. All calls that
// the same opening refuses share one OpenError: do not change it.
type OpenError struct {
	// Name is the name of the breaker.
	Name string
	// Key is the key of a member of a Group, as text.
	Key string
	// State is Open, ForcedOpen, HalfOpen if no probe was due or all were in flight, or Recovering
	// if only a share of the calls passes.
	State State
	// Reason is why the breaker opened, such as "failure rate 57% of 40 calls, limit 50%", or
	// Config.Refuse.
	Reason string
	// Until is when the breaker lets a probe through. For HalfOpen that may happen earlier, and
	// after a run of failures for Open too. It is zero for ForcedOpen and Recovering.
	Until time.Time
	// Margin and LastFailures are those of the Change in which the breaker opened. They are empty
	// if it was opened by hand.
	Margin       string
	LastFailures []FailedCall

	cooldown time.Duration // what RetryAfter returns if Until is zero
	began    time.Time     // HalfOpen: when the oldest probe in flight began, if Until is set
	spread   *evenSequence // of RetryAfter, nil for none
}

func (e *OpenError) Error() string {
	name := strconv.Quote(e.Name)
	if e.Key != "" {
		name += " for " + strconv.Quote(e.Key)
	}
	switch {
	case e.State == HalfOpen && e.began.IsZero():
		return fmt.Sprintf("breaker %s is half-open and no probe is due (%s)", name, e.Reason)
	case e.State == HalfOpen:
		return fmt.Sprintf("breaker %s is half-open and all its probes are in flight (%s)", name, e.Reason)
	case e.State == Recovering:
		return fmt.Sprintf("breaker %s is recovering and refuses a share of the calls (%s)", name, e.Reason)
	case e.State == ForcedOpen && (e.Reason == "" || e.Reason == forcedReason):
		return fmt.Sprintf("breaker %s is forced open", name)
	case e.State == ForcedOpen:
		return fmt.Sprintf("breaker %s is forced open: %s", name, e.Reason)
	default:
		return fmt.Sprintf("breaker %s is open until %s: %s", name, e.Until.Format(time.TimeOnly), e.Reason)
	}
}

// Is reports whether target is ErrOpen or weir.ErrRefused.
func (e *OpenError) Is(target error) bool { return target == ErrOpen || target == sentinel.ErrRefused }

// minRetryAfter is the shortest wait of a refusal, so that a caller that waits and retries does not
// spin.
const minRetryAfter = time.Millisecond

// RetryAfter returns how long to wait before retrying: the time from now until Until, by the real
// clock, but at least 1ms. It returns the cooldown if the breaker is forced open.
//
// In the following states other calls decide whether the breaker closes. The refused callers should
// not wait for long, and should not come back together. So each call of RetryAfter adds a different
// part of a second:
//
//   - HalfOpen, if all probes are in flight: it returns the time that the oldest probe has been in
//     flight, or the time until Until if that is shorter, plus less than 1s. A breaker whose probes
//     are answered quickly lets more calls through soon after, long before Until.
//   - Recovering: it returns 1s, after which a lone call passes in any case, plus less than 1s.
func (e *OpenError) RetryAfter() time.Duration {
	var d time.Duration
	switch {
	case e.Until.IsZero():
		d = e.cooldown
	case e.began.IsZero():
		d = time.Until(e.Until)
	default:
		d = min(max(time.Since(e.began), 0), time.Until(e.Until))
	}
	return max(d+e.spread.next(time.Second), minRetryAfter)
}
