package limiter_test

import (
	"math"
	"time"
)

// oracle computes the answers of a limiter in the simplest way. Times are durations since the
// start, tokens have fractions, and within roundingError of a whole number either answer is right.
type oracle interface {
	// room returns the number of tokens at a time.
	room(at time.Duration) float64
	take(at time.Duration, n int)
	refund(n int)
}

const roundingError = 1e-6

// levelOracle is a token bucket: a level that rises with time, with a ceiling after a hold.
type levelOracle struct {
	rate    float64 // tokens per nanosecond
	burst   float64
	level   float64
	at      time.Duration
	until   time.Duration // end of the hold
	ceiling float64       // the most tokens at ceilAt; rises at the rate
	ceilAt  time.Duration
	filled  time.Duration // when it was last filled
	acts    []takenTokens // all tokens taken, with times
}

func newLevelOracle(every time.Duration, burst int) *levelOracle {
	return &levelOracle{rate: 1 / float64(every), burst: float64(burst), level: float64(burst), until: -1, ceiling: math.Inf(1)}
}

func (o *levelOracle) advance(at time.Duration) {
	level := o.level + o.rate*float64(at-o.at)
	if level > o.burst-roundingError && o.level < o.burst {
		o.filled = o.at + time.Duration((o.burst-o.level)/o.rate)
	}
	o.level, o.at = min(level, o.burst), at
}

// ceilingAt returns the ceiling at a time, at most the burst.
func (o *levelOracle) ceilingAt(at time.Duration) float64 {
	if c := o.ceiling + o.rate*float64(at-o.ceilAt); c < o.burst {
		return c
	}
	return math.Inf(1)
}

func (o *levelOracle) room(at time.Duration) float64 {
	if at < o.until {
		return 0
	}
	o.advance(at)
	return min(o.level, o.ceilingAt(at))
}

func (o *levelOracle) take(at time.Duration, n int) {
	o.level = o.room(at) - float64(n)
	o.acts = append(o.acts, takenTokens{at, n})
}

// refund comes after room at the same time.
func (o *levelOracle) refund(n int) {
	if o.level < o.burst && o.level+float64(n) >= o.burst {
		o.filled = o.at
	}
	o.level = min(o.level+float64(n), o.burst)
}

func (o *levelOracle) hold(at, d time.Duration) {
	if o.advance(at); d > 0 && at+d > o.until {
		o.until, o.ceiling, o.ceilAt = at+d, 1, at+d
	}
}

func (o *levelOracle) set(at, every time.Duration, burst int) {
	o.advance(at)
	c := o.ceilingAt(at)
	o.rate, o.burst = 1/float64(every), float64(burst)
	o.level = min(o.level, o.burst)
	if at >= o.until {
		o.ceiling, o.ceilAt = min(c, o.burst), at
		if math.IsInf(c, 1) {
			o.ceiling = c
		}
	}
}

// windowOracle is a window: a list of all tokens taken, and the time from which they count.
type windowOracle struct {
	limit   int
	since   func(at time.Duration) time.Duration
	counts  bool                                 // CountRefused
	part    func(at time.Duration) time.Duration // the start of the bucket of a time; nil for a log
	taken   []takenTokens
	present time.Duration
}

type takenTokens struct {
	at time.Duration
	n  int
}

func (o *windowOracle) used() (n int) {
	for _, a := range o.taken {
		if a.at >= o.since(o.present) {
			n += a.n
		}
	}
	return n
}

func (o *windowOracle) room(at time.Duration) float64 {
	o.present = at
	return float64(o.limit - o.used())
}

func (o *windowOracle) take(at time.Duration, n int) {
	o.present = at
	o.taken = append(o.taken, takenTokens{at, n})
}

// refuse counts a refused request, up to the limit per bucket.
func (o *windowOracle) refuse(at time.Duration, n int) {
	if !o.counts || n < 1 || n > o.limit {
		return
	}
	o.present = at
	if o.part == nil { // the oldest tokens are dropped
		o.refund(o.used() + n - o.limit)
		o.take(at, n)
		return
	}
	here := 0
	for _, a := range o.taken {
		if o.part(a.at) == o.part(at) {
			here += a.n
		}
	}
	o.take(at, min(n, o.limit-here))
}

// refund removes the oldest tokens that still count.
func (o *windowOracle) refund(n int) {
	for i := range o.taken {
		if a := &o.taken[i]; a.at >= o.since(o.present) && n > 0 {
			back := min(a.n, n)
			a.n -= back
			n -= back
		}
	}
}

func (o *windowOracle) refundAt(taken time.Duration, n int) {
	if taken >= o.since(o.present) {
		o.refund(n)
	}
}

// leakyOracle is a leaky bucket: it allows requests one at a time, at its rate.
type leakyOracle struct {
	every time.Duration
	free  time.Duration
	grain time.Duration // the resolution of its times
}

func (o *leakyOracle) room(at time.Duration) float64 {
	if at < o.free {
		return 0
	}
	return math.Inf(1)
}

func (o *leakyOracle) take(at time.Duration, n int) {
	cost := time.Duration(n) * o.every
	if at = at / o.grain * o.grain; o.grain > 1 && at > o.free {
		cost -= o.grain // a part of a permit was stored
	}
	o.free = max(o.free, at) + cost
}

func (o *leakyOracle) refund(int) {}

// limiterNode is a limiter with its queue and, for a Joint, its limiters.
type limiterNode struct {
	name  string
	of    oracle // nil for a Joint
	below []*limiterNode
	queue []*waitingCaller
	full  func(at, doubt time.Duration) bool // reports whether the key has, or may have, no room
	most  func() int                         // the most tokens per request
}

// waitingCaller is a waiting caller.
type waitingCaller struct {
	n     int
	until time.Duration // when it gives up; -1 means never
	where *limiterNode
	leave func()
	gone  bool // its context has been cancelled
}

// room returns the tokens that all limiters below have.
func (n *limiterNode) room(at time.Duration) float64 {
	if n.of != nil {
		return n.of.room(at)
	}
	least := math.Inf(1)
	for _, b := range n.below {
		least = min(least, b.room(at))
	}
	return least
}

// busy reports whether a caller waits for a limiter below.
func (n *limiterNode) busy() bool {
	for _, b := range n.below {
		if len(b.queue) > 0 || b.busy() {
			return true
		}
	}
	return false
}

func (n *limiterNode) take(at time.Duration, k int) {
	if n.of != nil {
		n.of.take(at, k)
	}
	for _, b := range n.below {
		b.take(at, k)
	}
}

func (n *limiterNode) refund(k int) {
	if n.of != nil {
		n.of.refund(k)
	}
	for _, b := range n.below {
		b.refund(k)
	}
}

// refuse counts a refused request in limiters with CountRefused and without waiters.
func (n *limiterNode) refuse(at time.Duration, k int) {
	if j, ok := n.of.(*windowOracle); ok && len(n.queue) == 0 {
		j.refuse(at, k)
	}
	if len(n.queue) == 0 {
		for _, b := range n.below {
			b.refuse(at, k)
		}
	}
}

// hold holds all buckets of the node.
func (n *limiterNode) hold(at, d time.Duration) {
	if o, ok := n.of.(*levelOracle); ok {
		o.hold(at, d)
	}
	for _, b := range n.below {
		b.hold(at, d)
	}
}
