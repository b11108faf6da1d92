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

// redisCell replays brandur/redis-cell. All that it answers is compared with its formulas, and, where these make sense, with
// a TokenBucket. That is given the interval which theirs keeps, the period by the count without a fraction of a
// nanosecond, and then must be equal; with the nominal rate it must be so up to a nanosecond a token.
var redisCell = replaying("t_ns max_burst count period_s quantity", func(r *run, c cellConfig) func(cellStep) {
	theirs := cell{expires: c.Store == "redis-ttl"}
	var ours *limiter.TokenBucket
	var before cellStep // as ours took part in
	return func(s cellStep) {
		if theirs.expired(s.At) {
			ours = nil
			if *theirs.tat > s.At {
				r.part(earlyDeath)
			}
			theirs.tat, theirs.peeked = nil, false
		}
		if theirs.peeked && s.At < *theirs.tat {
			r.part(peekWrites)
			ours, theirs.peeked = nil, false
		}
		owed := theirs.tat
		theirs.check(r, s)
		if d := cellQuirk(s, owed); d != "" {
			r.without(d)
			ours = nil
			return
		}
		if ours == nil || before.MaxBurst != s.MaxBurst || before.Count != s.Count || before.Period != s.Period {
			ours = s.bucket(limiter.Every(s.interval()), owed) // a key remembers no parameters, only this
		}
		before = s
		s.compare(r, ours.TakeAt(unix(s.At), int(s.Quantity)), owed)
		nominal := s.bucket(limiter.Per(float64(s.Count), time.Duration(s.Period)*time.Second), owed)
		s.compareRoughly(r, nominal.TakeAt(unix(s.At), int(s.Quantity)))
	}
})

// cellQuirk is why ours cannot do a step.
func cellQuirk(s cellStep, owed *int64) divergence {
	switch {
	case s.Count <= 0 || s.Period <= 0 || s.MaxBurst < 0 || s.Quantity < 0 || s.interval() == 0:
		return noRate
	case owed != nil && *owed-s.At > int64(longest), s.Period > int64(longest/time.Second),
		s.interval() > longest/time.Duration(max(s.MaxBurst, s.Quantity, 1)):
		return centuries
	}
	config := limiter.TokenBucketConfig{Rate: limiter.Every(s.interval()), Burst: int(s.MaxBurst + 1)}
	if config.Validate() != nil {
		return noRate
	}
	return ""
}

// longest is how much a bucket of ours can count in nanoseconds, and a half for one more token.
const longest time.Duration = 1 << 59

// interval is what theirs keeps between two permits.
func (s cellStep) interval() time.Duration {
	if s.Count == 0 {
		return 0
	}
	return time.Duration(toLong(float64(s.Period) * 1e9 / float64(s.Count)))
}

// bucket is one that is full at the time tat, or at once.
func (s cellStep) bucket(rate limiter.Rate, tat *int64) *limiter.TokenBucket {
	b := limiter.NewTokenBucketAt(limiter.TokenBucketConfig{Rate: rate, Burst: int(s.MaxBurst + 1)}, unix(s.At))
	if tat != nil {
		b.TakeAt(unix(*tat-int64(s.interval())), 1)
	}
	return b
}

func (s cellStep) compare(r *run, ours limiter.Result, owed *int64) {
	same(r, "limited", s.Limited, !ours.OK)
	same(r, "limit", s.Limit, int64(ours.Limit))
	retry := ours.RetryAfter
	if retry == 0 || retry == limiter.Never {
		retry = -time.Second
	}
	same(r, "retry_after_ns", s.RetryAfter, int64(retry))
	if !r.stopped && *s.Limited && owed != nil && *owed < s.At {
		r.part(idleKey)
		return
	}
	same(r, "reset_after_ns", s.ResetAfter, int64(ours.ResetAfter))
	if !r.stopped && *s.Remaining != int64(ours.Remaining) && s.interval()%time.Microsecond != 0 {
		r.part(wholeMicros)
		return
	}
	same(r, "remaining", s.Remaining, int64(ours.Remaining))
}

// compareRoughly allows a nanosecond a token, for theirs cuts each interval.
func (s cellStep) compareRoughly(r *run, ours limiter.Result) {
	if r.stopped {
		return
	}
	bound := time.Duration(s.Quantity + s.MaxBurst + 3)
	theirs, retry := time.Duration(*s.ResetAfter), time.Duration(max(*s.RetryAfter, 0))
	switch {
	case ours.OK == *s.Limited: // either came just in time for the one and just too early for the other, or
		if max(ours.RetryAfter, retry) > bound {
			r.fault("at the nominal rate ours has %+v, theirs not: %s", ours, r.seq.Steps[r.at])
		}
	case (ours.ResetAfter-max(theirs, 0)).Abs() > bound || ours.RetryAfter < limiter.Never && (ours.RetryAfter-retry).Abs() > bound:
		r.fault("at the nominal rate ours has %+v, more than %s off: %s", ours, bound, r.seq.Steps[r.at])
	}
}

// cell is redis-cell's arithmetic, which wraps, and the key in its store.
type cell struct {
	expires bool   // as in redis: after whole milliseconds
	tat     *int64 // what is stored
	dies    int64  // ms
	peeked  bool   // a request for nothing stored it
}

// expired reports whether the key is no longer there.
func (c *cell) expired(now int64) bool {
	return c.tat != nil && c.expires && now/1e6 > c.dies
}

// check takes a step and compares all that theirs answered.
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
	same(r, "limited", s.Limited, early > 0)
	same(r, "limit", s.Limit, s.MaxBurst+1)
	same(r, "retry_after_ns", s.RetryAfter, retry)
	same(r, "reset_after_ns", s.ResetAfter, reset)
	remaining := cellRemaining(tolerance-reset, interval)
	same(r, "remaining", s.Remaining, remaining)
	same(r, "reply", s.Reply, []int64{max(min(early, 1), 0), s.MaxBurst + 1, remaining, cellSeconds(retry), cellSeconds(reset)})
	sameOrNull(r, "tat_ns", s.Tat, c.tat)
	none(r, "error", s.Error)
}

func (c *cell) checkError(r *run, s cellStep, text string) {
	same(r, "error", s.Error, text)
	sameOrNull(r, "tat_ns", s.Tat, c.tat)
	none(r, "limited", s.Limited)
	none(r, "limit", s.Limit)
	none(r, "retry_after_ns", s.RetryAfter)
	none(r, "reset_after_ns", s.ResetAfter)
	none(r, "remaining", s.Remaining)
	none(r, "reply", s.Reply)
}

// cellRemaining divides whole microseconds.
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

// cellSeconds are seconds, one more where whole milliseconds are left over.
func cellSeconds(ns int64) int64 {
	seconds := ns / 1e9
	if ns%1e9 >= 1e6 {
		seconds++
	}
	return seconds
}
