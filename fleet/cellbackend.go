package fleet

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/limiter"
)

// cellStore asks CL.THROTTLE where the server has it, and otherwise the script.
type cellBackend struct {
	namespace
	cellMath
}

func (s *cellBackend) stateKeys(k requestKey) []string { return []string{s.keyBase(k.tag)} }

func (s *cellBackend) takeEach(ctx context.Context, k requestKey, n int, at time.Time) ([]limiter.Result, error) {
	return asList(s.take(ctx, k, n, at))
}

func (s *cellBackend) take(ctx context.Context, k requestKey, n int, at time.Time) (limiter.Result, error) {
	if n > 0 && at.IsZero() && s.link.hasCell.Load() {
		r, err := s.takeFromModule(ctx, k.tag, n)
		if !redis.HasErrorPrefix(err, "unknown command") { // has not been executed: the server is another than it was
			return r, err
		}
		s.link.hasCell.Store(false)
	}
	return s.takeByScript(ctx, k.tag, n, at)
}

// rounds reports whether a refusal may end before it says, for the server's own command knows whole
// seconds alone.
func (l *Limiter) roundsToSeconds() bool {
	_, cell := l.groups[0].backend.(*cellBackend)
	return cell && l.link.hasCell.Load()
}

// module asks the server's own command. A request for more than the limit is refused, whatever it
// is for.
func (s *cellBackend) takeFromModule(ctx context.Context, tag string, n int) (limiter.Result, error) {
	base := s.keyBase(tag)
	args := append([]any{"cl.throttle", base}, s.moduleArgs[:]...)
	reply, err := s.link.command(ctx, base, append(args, min(int64(n), s.limit+1))...)
	if err = s.checkLength(reply, err, resultLength); err != nil {
		return limiter.Result{}, err
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

func (s *cellBackend) takeByScript(ctx context.Context, tag string, n int, at time.Time) (limiter.Result, error) {
	n = int(max(min(int64(n), s.limit+1), -s.limit))
	return s.runScript(ctx, tag, n, s.interval*time.Duration(n), at)
}

// giveBack gives back what cannot have come again since it was taken, as if nothing had been owed
// before.
func (s *cellBackend) refund(ctx context.Context, k requestKey, n int, age time.Duration, at time.Time) error {
	n = int(min(int64(n), s.limit))
	back := s.interval*time.Duration(n) - age
	if back <= 0 {
		return nil
	}
	_, err := s.runScript(ctx, k.tag, -n, -back, at)
	return err
}

// charge has the script take n permits at that cost, or give them back.
func (s *cellBackend) runScript(ctx context.Context, tag string, n int, cost time.Duration, at time.Time) (limiter.Result, error) {
	var seconds, nanos, extra any = "", "", 0
	if !at.IsZero() {
		seconds, nanos, extra = at.Unix(), at.Nanosecond(), replayExtraMillis
	}
	write := 1
	if n == 0 {
		write = 0
	}
	reply, err := s.link.eval(ctx, throttleScript, []string{s.keyBase(tag)}, []any{
		seconds, nanos, extra, floorSeconds(s.tolerance), floorNanos(s.tolerance), floorSeconds(cost), floorNanos(cost), write,
	})
	if err = s.checkLength(reply, err, resultLength); err != nil {
		return limiter.Result{}, err
	}
	owed := duration(reply[3], reply[4])
	r := limiter.Result{OK: reply[0] == 0, Limit: int(s.limit), Remaining: int(s.remainingAt(s.tolerance - owed)), ResetAfter: owed}
	switch {
	case r.OK:
	case cost > s.tolerance:
		r.RetryAfter = limiter.Never
	default:
		r.RetryAfter = duration(reply[1], reply[2])
	}
	return r, nil
}

// floorSeconds and floorNanos are a duration as a pair: the seconds rounded down, and what is left,
// from 0 on.
func floorSeconds(d time.Duration) int64 {
	if d%time.Second < 0 {
		return int64(d/time.Second) - 1
	}
	return int64(d / time.Second)
}

func floorNanos(d time.Duration) int64 { return int64(d) - floorSeconds(d)*int64(time.Second) }

func duration(seconds, nanos int64) time.Duration {
	return time.Duration(seconds)*time.Second + time.Duration(nanos)
}
