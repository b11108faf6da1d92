package conformance_test

import (
	"math"
	"time"

	"github.com/weir-go/weir/limiter"
)

type cellConfig struct {
	Name  string `json:"name"`
	Store string `json:"store"` // "memory" or "redis-ttl"
	T0    int64  `json:"t0_ns"`
}

type cellStep struct {
	At       int64 `json:"t_ns"`
	MaxBurst int64 `json:"max_burst"`
	Count    int64 `json:"count"`
	Period   int64 `json:"period_s"`
	Quantity int64 `json:"quantity"`

	Limited    *bool    `json:"limited"`
	Limit      *int64   `json:"limit"`
	Remaining  *int64   `json:"remaining"`
	RetryAfter *int64   `json:"retry_after_ns"`
	ResetAfter *int64   `json:"reset_after_ns"`
	Reply      *[]int64 `json:"reply"`
	Error      *string  `json:"error"`
	Tat        *int64   `json:"tat_ns"`
}

// redisCellReplayer replays brandur/redis-cell. All its answers are compared with its formulas and,
// where these make sense, with a TokenBucket. A bucket with the interval of the reference, period /
// count truncated to nanoseconds, must be equal. A bucket with the nominal rate may differ by a
// nanosecond per token.
var redisCellReplayer = replaying("t_ns max_burst count period_s quantity", func(r *run, c cellConfig) func(cellStep) {
	reference := cell{expires: c.Store == "redis-ttl"}
	var weir *limiter.TokenBucket
	var before cellStep // the last step that weir did not skip
	return func(s cellStep) {
		if reference.expired(s.At) {
			weir = nil
			if *reference.tat > s.At {
				r.noteDivergence(earlyExpiry)
			}
			reference.tat, reference.peeked = nil, false
		}
		if reference.peeked && s.At < *reference.tat {
			r.noteDivergence(peekWrites)
			weir, reference.peeked = nil, false
		}
		owed := reference.tat
		reference.check(r, s)
		if d := cellQuirk(s, owed); d != "" {
			r.skipStep(d)
			weir = nil
			return
		}
		if weir == nil || before.MaxBurst != s.MaxBurst || before.Count != s.Count || before.Period != s.Period {
			// a key stores only this, not its parameters
			weir = s.bucket(limiter.Per(1, s.interval()), owed)
		}
		before = s
		s.compare(r, weir.TakeAt(nanoTime(s.At), int(s.Quantity)), owed)
		nominal := s.bucket(limiter.Per(float64(s.Count), time.Duration(s.Period)*time.Second), owed)
		s.compareRoughly(r, nominal.TakeAt(nanoTime(s.At), int(s.Quantity)))
	}
})

// cellQuirk returns why weir skips a step, or "".
func cellQuirk(s cellStep, owed *int64) divergence {
	switch {
	case s.Count <= 0 || s.Period <= 0 || s.MaxBurst < 0 || s.Quantity < 0 || s.interval() == 0:
		return refusedRate
	case owed != nil && *owed-s.At > int64(longestDebt), s.Period > int64(longestDebt/time.Second),
		s.interval() > longestDebt/time.Duration(max(s.MaxBurst, s.Quantity, 1)):
		return debtOfDecades
	}
	config := limiter.TokenBucketConfig{Rate: limiter.Per(1, s.interval()), Burst: int(s.MaxBurst + 1)}
	if config.Validate() != nil {
		return refusedRate
	}
	return ""
}

// longestDebt is half of what a TokenBucket can count in nanoseconds, which leaves room for one
// more token.
const longestDebt time.Duration = 1 << 59

// interval returns the time between two permits in the reference.
func (s cellStep) interval() time.Duration {
	if s.Count == 0 {
		return 0
	}
	return time.Duration(toLong(float64(s.Period) * 1e9 / float64(s.Count)))
}

// bucket returns a TokenBucket that is full at the time tat, or now if that is nil.
func (s cellStep) bucket(rate limiter.Rate, tat *int64) *limiter.TokenBucket {
	b := limiters.NewTokenBucket(limiter.TokenBucketConfig{Rate: rate, Burst: int(s.MaxBurst + 1)}, nanoTime(s.At))
	if tat != nil {
		b.TakeAt(nanoTime(*tat-int64(s.interval())), 1)
	}
	return b
}

func (s cellStep) compare(r *run, weir limiter.Result, owed *int64) {
	checkSame(r, "limited", s.Limited, !weir.OK)
	checkSame(r, "limit", s.Limit, int64(weir.Limit))
	retry := weir.RetryAfter
	if retry == 0 || retry == limiter.Never {
		retry = -time.Second
	}
	checkSame(r, "retry_after_ns", s.RetryAfter, int64(retry))
	if !r.stopped && *s.Limited && owed != nil && *owed < s.At {
		r.noteDivergence(idleKey)
		return
	}
	checkSame(r, "reset_after_ns", s.ResetAfter, int64(weir.ResetAfter))
	if !r.stopped && *s.Remaining != int64(weir.Remaining) && s.interval()%time.Microsecond != 0 {
		r.noteDivergence(wholeMicros)
		return
	}
	checkSame(r, "remaining", s.Remaining, int64(weir.Remaining))
}

// compareRoughly tolerates a nanosecond per token, because the reference truncates each interval.
func (s cellStep) compareRoughly(r *run, weir limiter.Result) {
	if r.stopped {
		return
	}
	bound := time.Duration(s.Quantity + s.MaxBurst + 3)
	reference, retry := time.Duration(*s.ResetAfter), time.Duration(max(*s.RetryAfter, 0))
	switch {
	case weir.OK == *s.Limited: // a mismatch, unless the call came at the very edge
		if max(weir.RetryAfter, retry) > bound {
			r.mismatch("at the nominal rate weir has %+v, which the reference does not: %s", weir, r.seq.Steps[r.at])
		}
	case (weir.ResetAfter-max(reference, 0)).Abs() > bound || weir.RetryAfter < limiter.Never && (weir.RetryAfter-retry).Abs() > bound:
		r.mismatch("at the nominal rate weir has %+v, more than %s off: %s", weir, bound, r.seq.Steps[r.at])
	}
}

// cell holds the key in the store of redis-cell. Its methods compute like redis-cell, whose
// integers wrap on overflow.
type cell struct {
	expires bool   // as in Redis, after whole milliseconds
	tat     *int64 // the stored time
	dies    int64  // ms
	peeked  bool   // a request for 0 stored it
}

// expired reports whether the key has expired.
func (c *cell) expired(now int64) bool {
	return c.tat != nil && c.expires && now/1e6 > c.dies
}

// check computes a step and compares all answers of the reference.
func (c *cell) check(r *run, s cellStep) {
	interval := int64(s.interval())
	if interval == 0 {
		c.checkError(r, s, "Store error: Zero rates are not supported")
		return
	}
	tolerance, increment := interval*(s.MaxBurst+1), interval*s.Quantity
	tat := s.At
	if c.tat != nil {
		tat = *c.tat
	}
	next := max(s.At, tat) + increment
	early := next - tolerance - s.At
	reset, retry := tat-s.At, int64(-time.Second)
	if early <= 0 {
		reset = next - s.At
		c.tat, c.dies, c.peeked = &next, s.At/1e6+reset/1e6, s.Quantity == 0 && next == s.At
	} else if increment <= tolerance {
		retry = early
	}
	if early <= 0 && c.expires && reset/1e6 < 0 {
		c.dies = math.MaxInt64
		c.checkError(r, s, "Store error: Error while setting key expire")
		return
	}
	checkSame(r, "limited", s.Limited, early > 0)
	checkSame(r, "limit", s.Limit, s.MaxBurst+1)
	checkSame(r, "retry_after_ns", s.RetryAfter, retry)
	checkSame(r, "reset_after_ns", s.ResetAfter, reset)
	remaining := cellRemaining(tolerance-reset, interval)
	checkSame(r, "remaining", s.Remaining, remaining)
	checkSame(r, "reply", s.Reply, []int64{max(min(early, 1), 0), s.MaxBurst + 1, remaining, cellSeconds(retry), cellSeconds(reset)})
	checkSameOrNull(r, "tat_ns", s.Tat, c.tat)
	checkAbsent(r, "error", s.Error)
}

func (c *cell) checkError(r *run, s cellStep, text string) {
	checkSame(r, "error", s.Error, text)
	checkSameOrNull(r, "tat_ns", s.Tat, c.tat)
	checkAbsent(r, "limited", s.Limited)
	checkAbsent(r, "limit", s.Limit)
	checkAbsent(r, "retry_after_ns", s.RetryAfter)
	checkAbsent(r, "reset_after_ns", s.ResetAfter)
	checkAbsent(r, "remaining", s.Remaining)
	checkAbsent(r, "reply", s.Reply)
}

// cellRemaining divides whole microseconds, as the reference does.
func cellRemaining(room, interval int64) int64 {
	if room <= -interval {
		return 0
	}
	switch permits := float64(room/1000) / float64(interval/1000); {
	case permits != permits:
		return 0
	case math.IsInf(permits, 0):
		return math.MaxInt64
	default:
		return int64(permits)
	}
}

// cellSeconds returns seconds, rounded up if whole milliseconds are left over.
func cellSeconds(ns int64) int64 {
	seconds := ns / 1e9
	if ns%1e9 >= 1e6 {
		seconds++
	}
	return seconds
}
