package conformance_test

import (
	"math"

	"github.com/weir-go/weir/limiter"
)

type rateConfig struct {
	Name  string `json:"name"`
	Limit number `json:"limit"` // per second
	Burst int    `json:"burst"`
	T0    int64  `json:"t0_ns"`
}

type rateStep struct {
	At    int64  `json:"t_ns"`
	Op    string `json:"op"`
	N     int    `json:"n"`
	Ref   int    `json:"ref"`
	Limit number `json:"limit"`

	OK     *bool   `json:"ok"`
	Delay  *int64  `json:"delay_ns"`
	Tokens *number `json:"tokens"`
}

// xtimeRateReplayer replays golang.org/x/time/rate. Its answers are compared with its arithmetic
// bit by bit, and with a TokenBucket up to rounding.
var xtimeRateReplayer = replaying("t_ns op n ref limit", func(r *run, c rateConfig) func(rateStep) {
	x := &rateReplay{
		run: r, latest: c.T0, bookings: map[int]rateBooking{}, cancelled: map[int]bool{}, reservations: map[int]rateReservation{},
		reference: rateLimiter{limit: float64(c.Limit), burst: c.Burst, tokens: float64(c.Burst), last: math.MinInt64 / 4},
	}
	return x.step
})

// rateReplay replays a sequence. weir is nil while it is skipped, and is then replaced by a bucket
// with the level of the reference.
type rateReplay struct {
	*run
	reference    rateLimiter
	bookings     map[int]rateBooking
	cancelled    map[int]bool
	weir         *limiter.TokenBucket
	reservations map[int]rateReservation // weir's
	fastest      float64                 // the highest limit since weir was made
	latest       int64
}

// rateReservation is a reservation of weir with the time at which its holder may act.
type rateReservation struct {
	*limiter.Reservation
	due int64
}

func (x *rateReplay) step(s rateStep) {
	if s.At < x.latest {
		x.dropWeir(clockBack)
	} else if x.weir == nil {
		x.seed()
	}
	x.latest = max(x.latest, s.At)
	switch s.Op {
	case "allow":
		x.allow(s)
	case "reserve":
		x.reserve(s)
	case "delay":
		x.delay(s)
	case "cancel":
		x.cancel(s)
		x.cancelled[s.Ref] = true
	case "setLimit":
		x.change(s, float64(s.Limit), x.reference.burst)
	case "setBurst":
		x.change(s, x.reference.limit, s.N)
	case "tokens":
	default:
		x.mismatch("op is %q", s.Op)
	}
	x.tokens(s)
}

// dropWeir skips weir from this step on, until it is replaced.
func (x *rateReplay) dropWeir(d divergence) {
	x.skipStep(d)
	x.weir = nil
}

// seed makes a TokenBucket with the level of the reference.
func (x *rateReplay) seed() {
	c := limiter.TokenBucketConfig{Rate: perSecond(x.reference.limit), Burst: x.reference.burst}
	if c.Burst < 1 || c.Validate() != nil {
		x.dropWeir(refusedRate)
		return
	}
	clear(x.reservations)
	x.fastest = x.reference.limit
	x.weir = bucket(c, x.reference.limit, x.reference.last, float64(c.Burst)-x.reference.tokens)
}

// slack returns how many tokens weir and the reference may differ by: floats are rounded, and times
// truncated to a nanosecond.
func (x *rateReplay) slack() float64 { return 1e-6 + 2e-9*x.fastest }

func (x *rateReplay) allow(s rateStep) {
	reference := x.reference.reserve(s.At, s.N, 0)
	checkSame(x.run, "ok", s.OK, reference.ok)
	if x.weir == nil {
		return
	}
	level := limiters.TokensAt(x.weir, nanoTime(s.At))
	x.decisionsAgree(s, level, reference.ok, x.weir.TakeAt(nanoTime(s.At), s.N).OK)
}

// decisionsAgree compares two decisions on a request for s.N tokens.
func (x *rateReplay) decisionsAgree(s rateStep, level float64, reference, weir bool) bool {
	switch {
	case reference == weir:
		return true
	case s.N < 0:
		x.dropWeir(refusedRate)
	case math.Abs(level-float64(s.N)) < x.slack():
		x.noteDivergence(floatEdge)
		x.weir = nil
	default:
		x.mismatch("weir has ok %t with %v tokens: %s", weir, level, x.seq.Steps[x.at])
	}
	return false
}

func (x *rateReplay) reserve(s rateStep) {
	reference := x.reference.reserve(s.At, s.N, math.MaxInt64)
	x.bookings[s.Ref] = reference
	checkSame(x.run, "ok", s.OK, reference.ok)
	checkSame(x.run, "delay_ns", s.Delay, reference.delay(s.At))
	if x.weir == nil {
		return
	}
	weir := limiters.ReserveAt(x.weir, nanoTime(s.At), s.N, limiter.Never)
	x.reservations[s.Ref] = rateReservation{weir, s.At + int64(weir.Delay)}
	if !x.decisionsAgree(s, math.NaN(), reference.ok, weir.OK) || !weir.OK {
		return
	}
	if bound := 1 + x.slack()/x.reference.limit*1e9; math.Abs(float64(reference.delay(s.At)-int64(weir.Delay))) > bound {
		x.mismatch("weir has delay %d, more than %v ns off: %s", weir.Delay, bound, x.seq.Steps[x.at])
	}
}

func (x *rateReplay) delay(s rateStep) {
	checkSame(x.run, "delay_ns", s.Delay, x.bookings[s.Ref].delay(s.At))
}

func (x *rateReplay) cancel(s rateStep) {
	booking := x.bookings[s.Ref]
	x.reference.cancel(s.At, booking)
	if x.weir == nil {
		return
	}
	weir, known := x.reservations[s.Ref]
	if known {
		limiters.CancelAt(weir.Reservation, nanoTime(s.At))
	}
	if x.difference(s.At) <= x.slack() {
		return
	}
	switch {
	case !known:
		x.noteDivergence(earlierReservation)
	case x.cancelled[s.Ref]:
		x.noteDivergence(cancelledTwice)
	case booking.limit != x.reference.limit:
		x.noteDivergence(cancelledAfterChange)
	case (s.At <= booking.at) != (s.At <= weir.due) && max(booking.at-weir.due, weir.due-booking.at) <= 1:
		x.noteDivergence(floatEdge)
	default:
		return
	}
	x.weir = nil
}

// difference returns by how many tokens weir and the reference differ.
func (x *rateReplay) difference(t int64) float64 {
	return math.Abs(limiters.TokensAt(x.weir, nanoTime(t)) - x.reference.tokensAt(t))
}

func (x *rateReplay) change(s rateStep, limit float64, burst int) {
	x.reference.change(s.At, limit, burst)
	x.fastest = max(x.fastest, limit)
	if x.weir == nil {
		return
	}
	if limiters.ChangeAt(x.weir, nanoTime(s.At), perSecond(limit), burst) != nil {
		x.dropWeir(refusedRate)
	}
}

func (x *rateReplay) tokens(s rateStep) {
	checkSame(x.run, "tokens", s.Tokens, number(x.reference.tokensAt(s.At)))
	switch {
	case x.weir == nil || x.stopped:
	case math.IsInf(x.reference.limit, 1):
		x.noteDivergence(unlimitedTokens)
	case x.difference(s.At) > x.slack():
		x.mismatch("weir has %v tokens: %s", limiters.TokensAt(x.weir, nanoTime(s.At)), x.seq.Steps[x.at])
	}
}
