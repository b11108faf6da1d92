package fleet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/limiter"
)

// cellLimit is the limit of CL.THROTTLE: see package rediscell.
type cellLimit struct {
	MaxBurst, Count int
	Period          time.Duration
}

func (c cellLimit) validate() error {
	var faults []error
	if c.MaxBurst < 0 || int64(c.MaxBurst) >= maxBurst {
		faults = append(faults, fmt.Errorf("fleet: MaxBurst is %d, must lie between 0 and %d", c.MaxBurst, int64(maxBurst)-1))
	}
	if c.Count < 1 {
		faults = append(faults, fmt.Errorf("fleet: Count is %d, must be at least 1", c.Count))
	}
	if c.Period < time.Second || c.Period > maxWindow || c.Period%time.Second != 0 {
		faults = append(faults, fmt.Errorf("fleet: Period is %s, must be whole seconds between 1s and %s", c.Period, maxWindow))
	}
	if len(faults) == 0 {
		faults = append(faults, c.validateInterval())
	}
	return errors.Join(faults...)
}

func (c cellLimit) validateInterval() error {
	interval := newCellMath(c).interval
	if interval == 0 {
		return fmt.Errorf("fleet: Count is %d, must be at most one per nanosecond, %d", c.Count, c.Period)
	}
	if float64(interval)*float64(c.MaxBurst+1) > float64(maxFillTime) {
		return fmt.Errorf("fleet: MaxBurst is %d, must be refilled within %s at %d per %s", c.MaxBurst, maxFillTime, c.Count, c.Period)
	}
	return nil
}

// compile returns the token bucket with the same rate and burst, which is used in the policy for
// outages and where this limit is combined with others. Its field cell has the limit itself.
func (c cellLimit) compile() (limitSpec, error) {
	if err := c.validate(); err != nil {
		return limitSpec{}, err
	}
	s, err := TokenBucket{Rate: limiter.Per(float64(c.Count), c.Period), Burst: c.MaxBurst + 1}.compile()
	s.cell = &c
	return s, err
}

// cellMath is the arithmetic of redis-cell, the generic cell rate algorithm.
type cellMath struct {
	moduleArgs [3]any        // of CL.THROTTLE: max_burst, count, period
	interval   time.Duration // between two tokens
	tolerance  time.Duration // how far the time of a key may run ahead of the clock
	limit      int64
}

func newCellMath(c cellLimit) cellMath {
	seconds := int64(c.Period / time.Second)
	m := cellMath{moduleArgs: [3]any{c.MaxBurst, c.Count, seconds}, limit: int64(c.MaxBurst) + 1}
	m.interval = time.Duration(float64(seconds) * 1e9 / float64(c.Count))
	m.tolerance = m.interval * time.Duration(m.limit)
	return m
}

// remainingAt returns how many tokens can be taken. room is the time by which the time stored for
// the key may still advance: each token advances it by the interval. Like redis-cell it divides
// whole microseconds, so an interval below 1µs can divide by zero.
func (m cellMath) remainingAt(room time.Duration) int64 {
	if room <= -m.interval {
		return 0
	}
	switch tokens := float64(room/time.Microsecond) / float64(m.interval/time.Microsecond); {
	case tokens != tokens: // NaN
		return 0
	case tokens >= math.MaxInt64:
		return math.MaxInt64
	default:
		return int64(tokens)
	}
}

// cellBackend decides by CL.THROTTLE if the server has that command, and otherwise by a script.
type cellBackend struct {
	namespace
	cellMath
}

func (b *cellBackend) take(ctx context.Context, k requestKey, n int, at time.Time) ([]limiter.Result, error) {
	var r limiter.Result
	var err error
	if n > 0 && at.IsZero() && b.link.hasCell.Load() {
		r, err = b.takeFromModule(ctx, k.tag, n)
		if !redis.HasErrorPrefix(err, "unknown command") {
			return []limiter.Result{r}, err
		}
		// the address leads to a different server now, which has executed nothing
		b.link.hasCell.Store(false)
	}
	n = int(max(min(int64(n), b.limit+1), -b.limit))
	r, err = b.runScript(ctx, k.tag, n, b.interval*time.Duration(n), at)
	return []limiter.Result{r}, err
}

// takeFromModule calls CL.THROTTLE. A request for more than the limit is cut to limit+1, which is
// refused in the same way.
func (b *cellBackend) takeFromModule(ctx context.Context, tag string, n int) (limiter.Result, error) {
	base := b.keyBase(tag)
	args := append([]any{"cl.throttle", base}, b.moduleArgs[:]...)
	reply, err := b.link.command(ctx, base, append(args, min(int64(n), b.limit+1))...)
	if err = b.checkLength(reply, err, resultLength); err != nil {
		return limiter.Result{}, err
	}
	// the module counts from the time of a key that has expired up to a millisecond ago
	most := b.remainingAt(b.tolerance + time.Millisecond)
	if !isWithin(reply[0], 0, 1) || reply[1] != b.limit || !isWithin(reply[2], 0, most) || !isWithin(reply[3], -1, maxSeconds) || !isWithin(reply[4], 0, maxSeconds) {
		return limiter.Result{}, b.invalidReply()
	}
	r := limiter.Result{OK: reply[0] == 0, Limit: int(reply[1]), Remaining: int(reply[2]), ResetAfter: time.Duration(reply[4]) * time.Second}
	switch {
	case r.OK:
	case reply[3] < 0:
		r.RetryAfter = limiter.Never
	default:
		r.RetryAfter = max(time.Duration(reply[3])*time.Second, time.Millisecond)
	}
	return r, nil
}

// roundsToSeconds reports whether times in refusals may be too long because CL.THROTTLE answers in
// whole seconds.
func (l *Limiter) roundsToSeconds() bool {
	_, cell := l.groups[0].backend.(*cellBackend)
	return cell && l.link.hasCell.Load()
}

// refund gives back the tokens that have not returned by themselves since they were taken. It
// computes their number as if the key had been unused before.
func (b *cellBackend) refund(ctx context.Context, k requestKey, n int, age time.Duration, at time.Time) error {
	n = int(min(int64(n), b.limit))
	back := b.interval*time.Duration(n) - age
	if back <= 0 {
		return nil
	}
	_, err := b.runScript(ctx, k.tag, -n, -back, at)
	return err
}

// settle stores a debt as a later time, which redis-cell and its module understand too.
func (b *cellBackend) settle(ctx context.Context, k requestKey, id string, n int, age time.Duration, at time.Time) error {
	cost := b.interval * time.Duration(min(int64(n), int64(maxFillTime/b.interval)+1))
	if n < 0 {
		back := b.interval*time.Duration(min(int64(-n), b.limit)) - age
		if back <= 0 {
			return nil
		}
		cost = -back
	}
	keys := []string{b.keyBase(k.tag), b.settlementKey(k.tag, id)}
	reply, err := b.link.eval(ctx, throttleScript, keys, b.scriptArgs(cost, 1, id, at))
	return b.nameKinds(ctx, b.checkSettled(reply, err), keys[:1], []string{"throttle"})
}

// scriptArgs returns the arguments of the script.
func (b *cellBackend) scriptArgs(cost time.Duration, write int, settlement string, at time.Time) []any {
	var seconds, nanos, extra any = "", "", 0
	if !at.IsZero() {
		seconds, nanos, extra = at.Unix(), at.Nanosecond(), replayExtraMillis
	}
	return []any{
		seconds, nanos, extra, floorSeconds(b.tolerance), floorNanos(b.tolerance), floorSeconds(cost), floorNanos(cost), write,
		rememberedMillis(settlement),
	}
}

// runScript changes the key's time by cost: forward to take n tokens, back to refund them.
func (b *cellBackend) runScript(ctx context.Context, tag string, n int, cost time.Duration, at time.Time) (limiter.Result, error) {
	write := 1
	if n == 0 {
		write = 0
	}
	reply, err := b.link.eval(ctx, throttleScript, []string{b.keyBase(tag)}, b.scriptArgs(cost, write, "", at))
	if err = b.checkLength(reply, err, resultLength); err != nil {
		return limiter.Result{}, b.nameKinds(ctx, err, []string{b.keyBase(tag)}, []string{"throttle"})
	}
	if !isThrottleReply(reply, n) {
		return limiter.Result{}, b.invalidReply()
	}
	resetAfter := toDuration(reply[3], reply[4])
	r := limiter.Result{OK: reply[0] == 0, Limit: int(b.limit), Remaining: int(b.remainingAt(b.tolerance - resetAfter)), ResetAfter: resetAfter}
	switch {
	case r.OK:
	case cost > b.tolerance:
		r.RetryAfter = limiter.Never
	default:
		r.RetryAfter = toDuration(reply[1], reply[2])
	}
	return r, nil
}

// isThrottleReply reports whether the numbers of throttle.lua are in their range. The first time is
// negative if the request is allowed, and the second only if more than all tokens were given back.
func isThrottleReply(reply []int64, n int) bool {
	const maxNanos = int64(time.Second) - 1
	leastEarly, leastOwed := -maxSeconds, int64(0)
	if reply[0] == 1 {
		leastEarly = 0
	}
	if n < 0 {
		leastOwed = -maxSeconds
	}
	return isWithin(reply[0], 0, 1) && isWithin(reply[1], leastEarly, maxSeconds) && isWithin(reply[2], 0, maxNanos) &&
		isWithin(reply[3], leastOwed, maxSeconds) && isWithin(reply[4], 0, maxNanos)
}

// floorSeconds returns the seconds of d, rounded down.
func floorSeconds(d time.Duration) int64 {
	if d%time.Second < 0 {
		return int64(d/time.Second) - 1
	}
	return int64(d / time.Second)
}

// floorNanos returns what floorSeconds leaves of d, which is never negative.
func floorNanos(d time.Duration) int64 { return int64(d) - floorSeconds(d)*int64(time.Second) }

func toDuration(seconds, nanos int64) time.Duration {
	return time.Duration(seconds)*time.Second + time.Duration(nanos)
}
