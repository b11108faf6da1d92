package main

import (
	"context"
	"math"
	"sync"
	"time"
)

// The designs of this file were tried for package inflight and were not built. They begin with the
// same limit, and learn from the same calls: those that were answered, and those that failed late.
// A cut starts from at most the number of calls in flight, or twice that number, because a limit
// that is not used up says nothing about the service.

// adaptiveBound computes a limit from the calls that have ended. A lock guards it.
type adaptiveBound interface {
	// ended records a call and the number of calls in flight including it, and returns the new
	// limit.
	ended(latency float64, failed bool, inFlight int) (limit float64)
}

const (
	firstLimit = 50
	mostCalls  = 1e6
)

// boundedCaller refuses calls above a bound.
func boundedCaller(b adaptiveBound) caller {
	var (
		mu       sync.Mutex
		inFlight int
		limit    = float64(firstLimit)
	)
	return func(ctx context.Context, f func(context.Context) error) error {
		mu.Lock()
		if float64(inFlight+1) > math.Floor(limit) {
			mu.Unlock()
			return errNoSlot
		}
		inFlight++
		mu.Unlock()
		start := time.Now()
		err := f(ctx)
		mu.Lock()
		limit = min(max(b.ended(float64(time.Since(start)), err != nil, inFlight), 1), mostCalls)
		inFlight--
		mu.Unlock()
		return err
	}
}

// aimd adds 1/limit to the limit for each call while more than half of the limit is in use. It
// lowers the limit by a tenth when the mean latency of the last calls is above three times the
// usual one, or when a call fails late. That is TCP's rule (Jacobson, "Congestion Avoidance and
// Control", 1988) with latency in place of lost packets, and with the factor of Netflix's
// AIMDLimit.
type aimd struct {
	usual  mean
	recent mean
	wait   int // calls that began before the last cut
	limit  float64
}

func newAIMD() *aimd { return &aimd{usual: mean{of: 600}, recent: mean{of: 10}, limit: firstLimit} }

func (a *aimd) ended(latency float64, failed bool, inFlight int) float64 {
	known := a.usual.n >= a.recent.of
	late := failed && known && latency > 2*a.usual.value
	if failed && !late {
		return a.limit
	}
	a.recent.add(latency)
	congested := late || known && a.recent.value > 3*a.usual.value
	if !congested {
		a.usual.add(latency)
	}
	a.wait--
	switch {
	case congested && a.wait <= 0:
		a.limit, a.wait = max(0.9*min(a.limit, float64(inFlight)), 1), inFlight
	case !congested && 2*float64(inFlight) > a.limit:
		a.limit += 1 / a.limit
	}
	return a.limit
}

// gradient multiplies the limit after each 20 calls by twice the ratio of the least mean latency so
// far to the present one, which counts as 0.5 to 1. It adds the square root of the limit for a
// queue: Netflix's first gradient limit. Late failures halve the limit.
type gradient struct {
	least  float64 // mean latency of a window
	sum, n float64
	late   bool
	limit  float64
}

func newGradient() *gradient { return &gradient{limit: firstLimit} }

func (g *gradient) ended(latency float64, failed bool, inFlight int) float64 {
	const window = 20
	late := failed && g.least > 0 && latency > 2*g.least
	if failed && !late {
		return g.limit
	}
	g.sum, g.n, g.late = g.sum+latency, g.n+1, g.late || late
	if g.n < window {
		return g.limit
	}
	now := g.sum / g.n
	if g.least == 0 || now < g.least {
		g.least = now
	}
	factor := min(max(2*g.least/now, 0.5), 1)
	if g.late {
		factor = 0.5
	}
	if inUse := min(g.limit, 2*float64(inFlight)); factor < 1 || inUse == g.limit {
		g.limit = max(inUse*factor, 1) + math.Sqrt(inUse)
	}
	g.sum, g.n, g.late = 0, 0, false
	return g.limit
}

// mean is a moving mean over about the last of values.
type mean struct{ value, n, of float64 }

func (m *mean) add(v float64) {
	m.n = min(m.n+1, m.of)
	m.value += (v - m.value) / m.n
}
