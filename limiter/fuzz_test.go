package limiter_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

// model is a token bucket in rational numbers: a level that rises with time and falls with each
// request.
type model struct {
	perNano, burst, level *big.Rat
	at                    time.Duration
}

func newModel(events float64, per time.Duration, burst int) *model {
	rate := new(big.Rat).SetFloat64(events)
	rate.Quo(rate, new(big.Rat).SetInt64(int64(per)))
	return &model{perNano: rate, burst: big.NewRat(int64(burst), 1), level: big.NewRat(int64(burst), 1)}
}

// levelAt returns the level at a time, which must not go back.
func (m *model) levelAt(at time.Duration) *big.Rat {
	gain := new(big.Rat).SetInt64(int64(at - m.at))
	gain.Mul(gain, m.perNano)
	return minRat(gain.Add(gain, m.level), m.burst)
}

func (m *model) take(at time.Duration, n int) {
	m.level, m.at = m.levelAt(at), at
	m.level = new(big.Rat).Sub(m.level, big.NewRat(int64(n), 1))
}

func (m *model) refund(n int) {
	m.level = minRat(new(big.Rat).Add(m.level, big.NewRat(int64(n), 1)), m.burst)
}

func minRat(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// FuzzTokenBucket compares a token bucket with the model. They may disagree only within the
// nanosecond in which a token is added. Each RetryAfter must be enough and minimal.
func FuzzTokenBucket(f *testing.F) {
	f.Add(uint32(3), uint64(time.Second), uint16(5), []byte{1, 1, 0, 200, 3, 7, 9, 9, 0, 1, 2, 255})
	f.Add(uint32(1000003), uint64(time.Second), uint16(1), []byte{1, 0, 0, 1, 1, 0, 0, 1})
	f.Add(uint32(7), uint64(time.Minute), uint16(40), []byte{40, 100, 100, 2, 80, 1, 0, 0})
	f.Add(uint32(3), uint64(2), uint16(3), []byte{1, 0, 0, 3, 1, 0, 0, 3})
	f.Add(uint32(1), uint64(1e18), uint16(60000), []byte{1, 0, 0, 3, 250, 0, 0, 3})
	f.Fuzz(func(t *testing.T, events uint32, per uint64, burst uint16, script []byte) {
		span, size := time.Duration(per), int(burst)
		rate := limiter.Per(float64(events), span)
		if rate.Validate() != nil || size < 1 {
			return
		}
		b, m := newBucket(rate, size), newModel(float64(events), span, size)
		grain := new(big.Rat).Add(m.perNano, new(big.Rat).Quo(m.burst, new(big.Rat).SetInt64(1<<58)))
		interval := per / uint64(events)
		var at time.Duration
		for ; len(script) >= 3; script = script[3:] {
			n := int(script[0]) * (1 + size/100)
			step := uint64(script[1]) << (script[2] % 32)
			if script[2] >= 128 {
				step = interval*uint64(script[1])/64 + uint64(script[2]%4)
			}
			if at += time.Duration(step % uint64(year)); at > 20*year {
				return
			}
			if script[0] > 250 {
				b.Refund(n % size)
				m.refund(n % size)
				continue
			}
			checkAgainst(t, b, m, grain, at, n)
		}
	})
}

func checkAgainst(t *testing.T, b *limiter.TokenBucket, m *model, grain *big.Rat, at time.Duration, n int) {
	t.Helper()
	level := m.levelAt(at)
	short := new(big.Rat).Sub(big.NewRat(int64(n), 1), level)
	r := b.TakeAt(start.Add(at), n)
	require.LessOrEqual(t, r.Remaining, r.Limit)
	switch {
	case int64(n) > m.burst.Num().Int64():
		require.False(t, r.OK)
		require.Equal(t, limiter.Never, r.RetryAfter)
	case r.OK:
		require.LessOrEqual(t, short.Cmp(grain), 0, "allowed %d at %s, but they are added 1ns later at the earliest", n, at)
		m.take(at, n)
	default:
		require.Positive(t, short.Cmp(new(big.Rat).Neg(grain)), "refused %d at %s, but they were there 1ns before", n, at)
		require.Positive(t, r.RetryAfter)
		if r.RetryAfter < 20*year {
			require.False(t, b.TakeAt(start.Add(at+r.RetryAfter-1), n).OK, "RetryAfter %s is minimal", r.RetryAfter)
			r = b.TakeAt(start.Add(at+r.RetryAfter), n)
			require.True(t, r.OK, "RetryAfter is enough")
			b.Refund(n)
		}
	}
}

// tokenList is a list of all tokens ever taken: the naive way to count.
type tokenList []struct {
	at time.Duration
	n  int
}

// takenSince returns the number of tokens taken at or after a time.
func (j tokenList) takenSince(from time.Duration) (sum int) {
	for _, e := range j {
		if e.at >= from {
			sum += e.n
		}
	}
	return sum
}

// FuzzWindows compares each window limiter with a journal: every answer must be the same.
func FuzzWindows(f *testing.F) {
	f.Add(uint8(5), uint16(100), uint8(10), []byte{3, 50, 3, 49, 3, 1, 3, 1, 5, 255, 5, 10, 1, 90})
	f.Add(uint8(1), uint16(7), uint8(3), []byte{1, 0, 1, 7, 1, 6, 1, 1, 1, 8, 1, 2})
	f.Add(uint8(200), uint16(1000), uint8(1), []byte{100, 9, 150, 200, 100, 200, 100, 255, 200, 255, 200, 255, 200, 255})
	f.Fuzz(func(t *testing.T, limit uint8, span uint16, buckets uint8, script []byte) {
		if limit < 1 || span < 1 || buckets < 1 {
			return
		}
		width := (time.Duration(span) + time.Duration(buckets) - 1) / time.Duration(buckets)
		// the time between the start and the window before it
		grid := time.Duration(start.UnixNano() % int64(span))
		for name, c := range map[string]struct {
			l    limiter.TimedLimiter
			from func(at time.Duration) time.Duration // the time from which tokens count
		}{
			"fixed":   {newFixedWindow(int(limit), time.Duration(span)), func(at time.Duration) time.Duration { return at - (at+grid)%time.Duration(span) }},
			"log":     {newSlidingLog(int(limit), time.Duration(span)), func(at time.Duration) time.Duration { return at - time.Duration(span) + 1 }},
			"sliding": {newSlidingWindow(int(limit), time.Duration(span), int(buckets)), func(at time.Duration) time.Duration { return at/width*width - time.Duration(buckets)*width }},
		} {
			var seen tokenList
			var at time.Duration
			for rest := script; len(rest) >= 2; rest = rest[2:] {
				n := int(rest[0])
				at += time.Duration(rest[1])
				used := seen.takenSince(c.from(at))
				r := c.l.TakeAt(start.Add(at), n)
				require.Equal(t, used+n <= int(limit), r.OK, "%s: Take(%d) at %s with %d used", name, n, at, used)
				if r.OK {
					seen = append(seen, struct {
						at time.Duration
						n  int
					}{at, n})
					used += n
				}
				require.Equal(t, int(limit)-used, r.Remaining, name)
				require.Zero(t, seen.takenSince(c.from(at+r.ResetAfter)), "%s: ResetAfter is enough", name)
				require.True(t, r.ResetAfter == 0 || seen.takenSince(c.from(at+r.ResetAfter-1)) > 0, "%s: ResetAfter is minimal", name)
				if !r.OK && n <= int(limit) {
					require.LessOrEqual(t, seen.takenSince(c.from(at+r.RetryAfter))+n, int(limit), "%s: RetryAfter is enough", name)
					require.Greater(t, seen.takenSince(c.from(at+r.RetryAfter-1))+n, int(limit), "%s: RetryAfter is minimal", name)
				}
			}
		}
	})
}

// FuzzGroup compares a group with one token bucket per key: evictions must not change an answer.
func FuzzGroup(f *testing.F) {
	f.Add(uint8(3), uint8(4), []byte{1, 1, 0, 2, 4, 10, 1, 1, 255, 3, 2, 1, 1, 0, 0, 200, 9, 0})
	f.Add(uint8(1), uint8(1), []byte("the quick brown fox jumps over the lazy dog, again and again and again"))
	f.Fuzz(func(t *testing.T, events, burst uint8, script []byte) {
		rate := limiter.Per(float64(events), 100)
		if events < 1 || burst < 1 || rate.Validate() != nil {
			return
		}
		g := limiter.NewGroupAt(limiter.GroupConfig[byte]{Rate: rate, Burst: int(burst)}, start)
		alone := map[byte]*limiter.TokenBucket{}
		var at time.Duration
		for ; len(script) >= 3; script = script[3:] {
			key, n := script[0], int(script[1])
			if at += time.Duration(script[2]); script[2] > 250 {
				at += 100_000
			}
			if alone[key] == nil {
				alone[key] = newBucket(rate, int(burst))
			}
			if script[2]%16 == 7 {
				alone[key].Refund(n)
				g.Get(key).RefundNow(n)
				continue
			}
			require.Equal(t, alone[key].TakeAt(start.Add(at), n), g.Get(key).TakeAt(start.Add(at), n), "key %d: Take(%d) at %s", key, n, at)
			require.LessOrEqual(t, g.Len(), len(alone))
		}
	})
}
