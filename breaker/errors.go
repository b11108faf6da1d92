package breaker

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
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
	// Reason is why the breaker opened, such as "failure rate 57% of 40 calls, limit 50%", or the
	// reason of the override.
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
	name := nameAndKey(e.Name, e.Key)
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

// nameAndKey returns the text of a name, and of a key if there is one.
func nameAndKey(name, key string) string {
	if key == "" {
		return strconv.Quote(name)
	}
	return strconv.Quote(name) + " for " + strconv.Quote(key)
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

// Explain returns in words why the breaker refuses calls: the reason, the margin, and the last
// failures, the newest first, on one line each. It returns "" unless Tripped returns true. Of each
// failure it shows what FailedCall.String returns.
func (b *Breaker) Explain() string {
	p := b.regime.Load()
	if p.passes == allCalls {
		return ""
	}
	e := p.refusal
	var s strings.Builder
	s.WriteString(e.Reason)
	if e.Margin != "" {
		s.WriteString("; " + e.Margin)
	}
	for _, f := range slices.Backward(e.LastFailures) {
		s.WriteString("\n" + f.String())
	}
	return s.String()
}

// margin says how many of the last failures must have been successes, so that the evidence would
// not have opened the breaker by any rule. where is the part of the text that says where the
// failures are. margin returns "" if functions of the user or slow calls may have opened the
// breaker anyway.
func (r *rules) margin(e *evidence, where string) string {
	if r.asked {
		return ""
	}
	n, ok := leastWhere(e.calls.Failures, func(n int64) bool { return !r.opensWithFewer(e, n) })
	if !ok {
		return ""
	}
	return fewerText(n, "failure", where)
}

// rateMargin is like margin, but for the rate that was reached: the failure rate, or otherwise the
// slow rate.
func (r *rules) rateMargin(e *evidence) string {
	if r.failureRate.reached(e.calls.Failures, e.calls.Calls+e.pending) {
		return r.margin(e, "in this window")
	}
	return r.slowMargin(e)
}

// slowMargin is like margin, but it says how many slow calls must have been fast. If another rule
// is reached too, it returns "".
func (r *rules) slowMargin(e *evidence) string {
	if r.asked || r.runReached(e.run, e.calls, e.pending) || e.streak >= int64(r.config.ConsecutiveFailures) {
		return ""
	}
	slow := min(e.slow.Calls, e.calls.Calls)
	n, ok := leastWhere(slow, func(n int64) bool { return !r.slowRate.reached(slow-n, e.calls.Calls) })
	if !ok {
		return ""
	}
	return fewerText(n, "slow call", "in this window")
}

// opensWithFewer reports whether the evidence would open the breaker if the last n failures, at
// least one, were successes. Then no consecutive failures would be left, so that rule needs no
// check.
//
// The score of a run is the largest sum over the calls since any earlier one. If the last n
// failures were successes, each of these sums would fall by the same amount, or to at most 0. So
// the sum of the run would stay the largest.
func (r *rules) opensWithFewer(e *evidence, n int64) bool {
	calls := e.calls
	calls.Failures -= n
	if _, reached := r.rateReached(calls, e.slow, e.pending); reached {
		return true
	}
	return r.runReached(e.run.FewerFailures(n), calls, e.pending)
}

// leastWhere returns the least n from 1 to most for which ok is true, and whether there is one. If
// ok is true for n, it must be true for all larger numbers.
func leastWhere(most int64, ok func(n int64) bool) (n int64, found bool) {
	i := sort.Search(int(most), func(i int) bool { return ok(int64(i) + 1) })
	return int64(i) + 1, int64(i) < most
}

func fewerText(n int64, what, where string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s fewer %s would not have opened it", n, what, where)
}

// evenSequence is a sequence of numbers that fill a range evenly, however many of them are used:
// the multiples of the golden ratio, modulo 1 (Weyl 1916; Knuth, The Art of Computer Programming,
// volume 3, section 6.4). Random numbers would leave gaps and clusters. A nil evenSequence has only
// zeros.
type evenSequence struct{ state atomic.Uint64 }

// goldenRatio is the golden ratio minus 1, as a share of 2⁶⁴.
const goldenRatio = 0x9e3779b97f4a7c15

// next returns the next number of the sequence, from 0 to below d.
func (s *evenSequence) next(d time.Duration) time.Duration {
	if s == nil {
		return 0
	}
	return fractionOf(s.state.Add(goldenRatio), d)
}

// maxStretch returns the largest share by which the breaker lengthens a wait that a service asks
// for.
func (c *Config) maxStretch() float64 { return valueOr(c.CooldownJitter, 0.1, 0) }

// stretchTime returns the time until which a service asked all its clients to wait, made later by a
// share of the wait. The share is at least 0 and less than jitter. It is computed from the random
// number drawn.
func stretchTime(asked, at time.Duration, jitter float64, drawn uint64) time.Duration {
	if asked <= at || jitter == 0 {
		return asked
	}
	longest := math.MaxInt64 - asked // no overflow
	if most := jitter * (float64(asked) - float64(at)); most < float64(longest) {
		longest = time.Duration(most)
	}
	return asked + fractionOf(drawn, longest)
}

// fractionOf returns d · n / 2⁶⁴.
func fractionOf(n uint64, d time.Duration) time.Duration {
	whole, _ := bits.Mul64(n, uint64(d))
	return time.Duration(whole)
}

// hashTime returns a number whose bits all depend on all bits of the time, in nanoseconds (the
// finalizer of SplitMix64; Steele, Lea and Flood 2014). Breakers that open at different nanoseconds
// draw different numbers, and a replay draws the same ones again.
func hashTime(t time.Time) uint64 {
	z := uint64(t.UnixNano())
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
