package conformance_test

import (
	"math"

	"github.com/weir-go/weir/internal/bridge"
	"github.com/weir-go/weir/limiter"
)

type rateConfig struct {
	Name  string `json:"name"`
	Limit number `json:"limit"` // a second
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

// xtimeRate replays golang.org/x/time/rate. What that answers is compared with its arithmetic bit by bit, and with a
// TokenBucket as far as floats go.
var xtimeRate = replaying("t_ns op n ref limit", func(r *run, c rateConfig) func(rateStep) {
	x := &rateReplay{
		run: r, latest: c.T0, bookings: map[int]rateBooking{}, cancelled: map[int]bool{}, reservations: map[int]rateReservation{},
		theirs: rateLimiter{limit: float64(c.Limit), burst: c.Burst, tokens: float64(c.Burst), last: math.MinInt64 / 4},
	}
	return x.step
})

// rateReplay is theirs and ours. Ours is nil while it cannot take part, and begins anew from where theirs stands.
type rateReplay struct {
	*run
	theirs       rateLimiter
	bookings     map[int]rateBooking
	cancelled    map[int]bool
	ours         *limiter.TokenBucket
	reservations map[int]rateReservation // those of ours
	fastest      float64                 // of the limits that ours has had
	latest       int64
}

// rateReservation is one of ours, and when its holder may act.
type rateReservation struct {
	*limiter.Reservation
	due int64
}

func (x *rateReplay) step(s rateStep) {
	if s.At < x.latest {
		x.leaveOut(clockBack)
	} else if x.ours == nil {
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
		x.change(s, float64(s.Limit), x.theirs.burst)
	case "setBurst":
		x.change(s, x.theirs.limit, s.N)
	case "tokens":
	default:
		x.fault("op is %q", s.Op)
	}
	x.tokens(s)
}

// leaveOut goes on without ours.
func (x *rateReplay) leaveOut(d divergence) {
	x.without(d)
	x.ours = nil
}

// seed makes a bucket of ours that stands as theirs does.
func (x *rateReplay) seed() {
	c := limiter.TokenBucketConfig{Rate: perSecond(x.theirs.limit), Burst: x.theirs.burst}
	if c.Burst < 1 || c.Validate() != nil {
		x.leaveOut(noRate)
		return
	}
	clear(x.reservations)
	x.fastest = x.theirs.limit
	x.ours = bucket(c, x.theirs.limit, x.theirs.last, float64(c.Burst)-x.theirs.tokens)
}

// slack is how many tokens ours and theirs may be apart: floats, and times cut to a nanosecond.
func (x *rateReplay) slack() float64 { return 1e-6 + 2e-9*x.fastest }

func (x *rateReplay) allow(s rateStep) {
	theirs := x.theirs.reserve(s.At, s.N, 0)
	same(x.run, "ok", s.OK, theirs.ok)
	if x.ours == nil {
		return
	}
	level := bridge.TokensAt(x.ours, unix(s.At))
	x.agree(s, level, theirs.ok, x.ours.TakeAt(unix(s.At), s.N).OK)
}

// agree compares the decisions on s.N of so many tokens.
func (x *rateReplay) agree(s rateStep, level float64, theirs, ours bool) bool {
	switch {
	case theirs == ours:
		return true
	case s.N < 0:
		x.leaveOut(noRate)
	case math.Abs(level-float64(s.N)) < x.slack():
		x.part(floatEdge)
		x.ours = nil
	default:
		x.fault("ours has ok %t with %v tokens: %s", ours, level, x.seq.Steps[x.at])
	}
	return false
}

func (x *rateReplay) reserve(s rateStep) {
	theirs := x.theirs.reserve(s.At, s.N, math.MaxInt64)
	x.bookings[s.Ref] = theirs
	same(x.run, "ok", s.OK, theirs.ok)
	same(x.run, "delay_ns", s.Delay, theirs.delay(s.At))
	if x.ours == nil {
		return
	}
	ours := bridge.ReserveAt(x.ours, unix(s.At), s.N, limiter.Never).(*limiter.Reservation)
	x.reservations[s.Ref] = rateReservation{ours, s.At + int64(ours.Delay)}
	if !x.agree(s, math.NaN(), theirs.ok, ours.OK) || !ours.OK {
		return
	}
	if bound := 1 + x.slack()/x.theirs.limit*1e9; math.Abs(float64(theirs.delay(s.At)-int64(ours.Delay))) > bound {
		x.fault("ours has delay %d, more than %v ns off: %s", ours.Delay, bound, x.seq.Steps[x.at])
	}
}

func (x *rateReplay) delay(s rateStep) {
	same(x.run, "delay_ns", s.Delay, x.bookings[s.Ref].delay(s.At))
}

func (x *rateReplay) cancel(s rateStep) {
	booking := x.bookings[s.Ref]
	x.theirs.cancel(s.At, booking)
	if x.ours == nil {
		return
	}
	ours, known := x.reservations[s.Ref]
	if known {
		bridge.CancelAt(ours.Reservation, unix(s.At))
	}
	if x.apart(s.At) <= x.slack() {
		return
	}
	switch {
	case !known:
		x.part(anew)
	case x.cancelled[s.Ref]:
		x.part(twice)
	case booking.limit != x.theirs.limit:
		x.part(oldRate)
	case (s.At <= booking.at) != (s.At <= ours.due) && max(booking.at-ours.due, ours.due-booking.at) <= 1:
		x.part(floatEdge)
	default:
		return
	}
	x.ours = nil
}

// apart is how many tokens ours differs from theirs.
func (x *rateReplay) apart(t int64) float64 {
	return math.Abs(bridge.TokensAt(x.ours, unix(t)) - x.theirs.tokensAt(t))
}

func (x *rateReplay) change(s rateStep, limit float64, burst int) {
	x.theirs.change(s.At, limit, burst)
	x.fastest = max(x.fastest, limit)
	if x.ours == nil {
		return
	}
	if bridge.ChangeAt(x.ours, unix(s.At), perSecond(limit), burst) != nil {
		x.leaveOut(noRate)
	}
}

func (x *rateReplay) tokens(s rateStep) {
	same(x.run, "tokens", s.Tokens, number(x.theirs.tokensAt(s.At)))
	switch {
	case x.ours == nil || x.stopped:
	case math.IsInf(x.theirs.limit, 1):
		x.part(unlimited)
	case x.apart(s.At) > x.slack():
		x.fault("ours has tokens %v: %s", bridge.TokensAt(x.ours, unix(s.At)), x.seq.Steps[x.at])
	}
}
