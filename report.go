package weir

import (
	"time"

	"github.com/weir-go/weir/internal/report"
)

// The live page reads gates and groups of gates through these functions.
var _ = func() bool {
	report.Gates = func(source any, yield func(*report.Breaker)) bool {
		r, ok := source.(interface {
			report(yield func(*report.Breaker))
		})
		if ok {
			r.report(yield)
		}
		return ok
	}
	report.Parts = append(report.Parts, func(source any, yield func(name string, limiter any)) {
		if s, ok := source.(interface {
			limiters(yield func(name string, limiter any))
		}); ok {
			s.limiters(yield)
		}
	})
	return true
}()

func (g *Gate) limiters(yield func(name string, limiter any)) {
	if l := g.Limiter(); l != nil {
		yield(g.name, l)
	}
}

func (g *Group[K]) limiters(yield func(name string, limiter any)) {
	if buckets := g.parts.Load().buckets; buckets != nil {
		yield(g.name, buckets)
	}
}

// report yields the report of the breaker, with the time until the hold ends.
func (g *Gate) report(yield func(*report.Breaker)) {
	report.Breakers(g.breaker, func(r *report.Breaker) {
		if end, held := g.hold.endOf(int64(time.Since(g.epoch))); held {
			r.Held = time.Duration(end) - time.Since(g.epoch)
		}
		yield(r)
	})
}

// report yields the keys that have series of their own.
func (g *Group[K]) report(yield func(*report.Breaker)) { report.Breakers(g.breakers, yield) }
