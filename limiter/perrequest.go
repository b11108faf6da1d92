package limiter

import (
	"math"
	"time"
)

// PerRequest returns a limiter that takes one token of l for each request, however many tokens the
// request is for. In a [Joint] it counts requests beside a limiter that counts what they cost:
//
//	model := limiter.NewJoint("model", limiter.PerRequest(requestsPerMinute), tokensPerMinute)
//	r := limiter.Reserve(model, estimate)
//
// Refund gives the token back with the last token of the request, and Settle never does. To wait,
// use a Joint. PerRequest panics if l is nil.
func PerRequest(l Limiter) Limiter {
	if l == nil {
		panic("limiter: PerRequest: the limiter is nil")
	}
	return perRequest{asMember(l)}
}

// perRequest is a limiter of requests. In a taken of it, n is the number of tokens of the request.
type perRequest struct{ member }

// one returns the tokens of the limiter for a request for n tokens, also if it is 0 or invalid.
func one(n int) int { return min(n, 1) }

// inTokens returns the answer of the limiter as one of a limiter of tokens, which it does not
// limit.
func (p perRequest) inTokens(r Result) Result {
	if r.Limit > 0 {
		r.Limit = math.MaxInt
	}
	if r.Remaining > 0 {
		r.Remaining = math.MaxInt
	}
	return r
}

func (p perRequest) Take(n int) Result { return p.member.Take(one(n)) }

func (p perRequest) TakeAt(t time.Time, n int) Result {
	return externalLimiter{p.member}.takeAt(t, one(n))
}

// peek counts the tokens ahead as one request, because it may be one.
func (p perRequest) peek(t time.Time, ahead int64, n int) Result {
	return p.member.peek(t, min(ahead, 1), one(n))
}

func (p perRequest) tryTake(t time.Time, n int, c counting) (Result, taken) {
	r, back := p.member.tryTake(t, one(n), c)
	if back.n > 0 {
		back.n = n
	}
	return r, back
}

func (p perRequest) takenAt(t time.Time, n int) taken {
	back := p.member.takenAt(t, one(n))
	back.n = n
	return back
}

func (p perRequest) putBack(now time.Time, back taken, n int) taken {
	if back.use(n); back.n == 0 {
		back.n = 1
		return p.member.putBack(now, back, 1)
	}
	return back
}

func (perRequest) charge(time.Time, taken, int) {}

func (perRequest) isItself(any) bool { return true }

func (p perRequest) record(r Result, n int) Result { return p.member.record(r, one(n)) }

func (p perRequest) refusedByJoint(t time.Time, n int, r Result, waited bool) {
	p.member.refusedByJoint(t, one(n), r, waited)
}

func (p perRequest) Hold(d time.Duration) {
	if h, ok := p.member.(holder); ok {
		h.Hold(d)
	}
}

func (p perRequest) period() time.Duration   { return periodOf(p.member) }
func (p perRequest) interval() time.Duration { return intervalOf(p.member) }
func (p perRequest) maxKeys() int            { return maxKeysOf(p.member) }

func (p perRequest) lacksRoom(n int) bool {
	k, ok := p.member.(interface{ lacksRoom(n int) bool })
	return ok && k.lacksRoom(one(n))
}
