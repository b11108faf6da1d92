package weir

import (
	"time"

	"github.com/weir-go/weir/internal/report"
)

// The live page reads gates and groups of gates through this function.
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
	return true
}()

// report yields the report of the breaker, with the time until the hold ends and the time until the
// limiter has a token.
func (g *Gate) report(yield func(*report.Breaker)) {
	report.Breakers(g.breaker, func(r *report.Breaker) {
		if end, held := g.hold.endOf(int64(time.Since(g.epoch))); held {
			r.Held = time.Duration(end) - time.Since(g.epoch)
		}
		if l := g.Limiter(); l != nil {
			r.Limiter = report.Limiters(l)
		}
		yield(r)
	})
}

// report yields the keys that have series of their own.
func (g *Group[K]) report(yield func(*report.Breaker)) { report.Breakers(g.breakers, yield) }
