package fleet

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/limiter"
)

// cellStore asks CL.THROTTLE where the server has it, and otherwise the script.
type cellStore struct {
	namespace
	cell
}

func (s *cellStore) stateKeys(k target) []string { return []string{s.base(k.tag)} }

func (s *cellStore) each(ctx context.Context, k target, n int, at time.Time) ([]limiter.Result, error) {
	return alone(s.decide(ctx, k, n, at))
}

func (s *cellStore) decide(ctx context.Context, k target, n int, at time.Time) (limiter.Result, error) {
	if n > 0 && at.IsZero() && s.link.cell.Load() {
		r, err := s.module(ctx, k.tag, n)
		if !redis.HasErrorPrefix(err, "unknown command") { // has not been executed: the server is another than it was
			return r, err
		}
		s.link.cell.Store(false)
	}
	return s.script(ctx, k.tag, n, at)
}

// rounds reports whether a refusal may end before it says, for the server's own command knows whole
// seconds alone.
func (l *Limiter) rounds() bool {
	_, cell := l.parts[0].store.(*cellStore)
	return cell && l.link.cell.Load()
}

// module asks the server's own command. A request for more than the limit is refused, whatever it
// is for.
func (s *cellStore) module(ctx context.Context, tag string, n int) (limiter.Result, error) {
	base := s.base(tag)
	args := append([]any{"cl.throttle", base}, s.command[:]...)
	reply, err := s.link.call(ctx, base, append(args, min(int64(n), s.limit+1))...)
	if err = s.whole(reply, err, figures); err != nil {
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

func (s *cellStore) script(ctx context.Context, tag string, n int, at time.Time) (limiter.Result, error) {
	n = int(max(min(int64(n), s.limit+1), -s.limit))
	return s.charge(ctx, tag, n, s.interval*time.Duration(n), at)
}

// giveBack gives back what cannot have come again since it was taken, as if nothing had been owed
// before.
func (s *cellStore) giveBack(ctx context.Context, k target, n int, age time.Duration, at time.Time) error {
	n = int(min(int64(n), s.limit))
	back := s.interval*time.Duration(n) - age
	if back <= 0 {
		return nil
	}
	_, err := s.charge(ctx, k.tag, -n, -back, at)
	return err
}

// charge has the script take n permits at that cost, or give them back.
func (s *cellStore) charge(ctx context.Context, tag string, n int, cost time.Duration, at time.Time) (limiter.Result, error) {
	var seconds, nanos, extra any = "", "", 0
	if !at.IsZero() {
		seconds, nanos, extra = at.Unix(), at.Nanosecond(), replayed
	}
	write := 1
	if n == 0 {
		write = 0
	}
	reply, err := s.link.eval(ctx, throttleScript, []string{s.base(tag)}, []any{
		seconds, nanos, extra, floorSeconds(s.tolerance), floorNanos(s.tolerance), floorSeconds(cost), floorNanos(cost), write,
	})
	if err = s.whole(reply, err, figures); err != nil {
		return limiter.Result{}, err
	}
	owed := duration(reply[3], reply[4])
	r := limiter.Result{OK: reply[0] == 0, Limit: int(s.limit), Remaining: int(s.remaining(s.tolerance - owed)), ResetAfter: owed}
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
