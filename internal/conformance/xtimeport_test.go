package conformance_test

import (
	"math"
	"time"
)

// rateLimiter is the arithmetic of golang.org/x/time/rate, float by float. Times are nanoseconds.
type rateLimiter struct {
	limit     float64 // tokens per second
	burst     int
	tokens    float64 // at the time last
	last      int64
	lastEvent int64 // the latest time at which a reservation may act
}

// rateBooking is a Reservation of rateLimiter.
type rateBooking struct {
	ok    bool
	n     int
	at    int64 // when it may act
	limit float64
}

func (l *rateLimiter) tokensAt(t int64) float64 {
	tokens := l.tokens
	if elapsed := time.Duration(t - l.last); elapsed > 0 {
		// 0 s × an infinite limit is NaN, which the recorder shows as 0
		tokens += rateTokens(elapsed, l.limit)
	}
	return math.Min(tokens, float64(l.burst))
}

func (l *rateLimiter) reserve(t int64, n int, longest time.Duration) rateBooking {
	if math.IsInf(l.limit, 1) {
		return rateBooking{ok: true, n: n, at: t}
	}
	tokens := l.tokensAt(t) - float64(n)
	var wait time.Duration
	if tokens < 0 {
		wait = rateDuration(-tokens, l.limit)
	}
	if n > l.burst || wait > longest {
		return rateBooking{}
	}
	l.tokens, l.last, l.lastEvent = tokens, t, addWithoutOverflow(t, wait)
	return rateBooking{ok: true, n: n, at: l.lastEvent, limit: l.limit}
}

func (l *rateLimiter) cancel(t int64, b rateBooking) {
	if !b.ok || math.IsInf(l.limit, 1) || b.n == 0 || b.at < t {
		return
	}
	back := float64(b.n) - rateTokens(time.Duration(l.lastEvent-b.at), b.limit)
	if back <= 0 {
		return
	}
	l.tokens = math.Min(l.tokensAt(t)+back, float64(l.burst))
	l.last = t
	if b.at == l.lastEvent {
		if previous := addWithoutOverflow(b.at, rateDuration(float64(-b.n), b.limit)); previous >= t {
			l.lastEvent = previous
		}
	}
}

// change updates the tokens, and then changes the limit and the burst.
func (l *rateLimiter) change(t int64, limit float64, burst int) {
	l.tokens, l.last = l.tokensAt(t), t
	l.limit, l.burst = limit, burst
}

func (b rateBooking) delay(t int64) int64 {
	if !b.ok {
		return math.MaxInt64
	}
	return max(b.at-t, 0)
}

func rateTokens(d time.Duration, limit float64) float64 {
	if limit <= 0 {
		return 0
	}
	return d.Seconds() * limit
}

func rateDuration(tokens, limit float64) time.Duration {
	if limit <= 0 {
		return math.MaxInt64
	}
	ns := tokens / limit * float64(time.Second)
	if ns > math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}

// addWithoutOverflow returns t + d without overflow.
func addWithoutOverflow(t int64, d time.Duration) int64 {
	if sum := t + int64(d); d < 0 || sum >= t {
		return sum
	}
	return math.MaxInt64
}
