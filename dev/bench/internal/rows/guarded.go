package rows

import (
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// Guarded is a cost that must not double.
type Guarded struct {
	Name              string
	Weir, Floor, Peer Side
	// the bounds of Weir/Floor and Weir/Peer, about 1.6 times the measured ratios
	ByFloor, ByPeer float64
}

// AllGuarded returns the guarded costs.
func AllGuarded() []Guarded {
	return []Guarded{
		{"breaker.Do, success", breakerDo("", breaker.Config{}), sinceAndAdd(), gobreakerExecute(), 2.8, 0.52},
		{"breaker.Do, open", breakerRefuses(), sinceFloor(), gobreakerRefuses(), 2.2, 0.88},
		{"TokenBucket.Take, allowed", bucketTakes(limiter.PerSecond(1e8)), sinceFloor(), rateAllows(1e8), 2.7, 0.80},
		{"TokenBucket.Take, refused", bucketRefuses(), sinceFloor(), rateRefuses(), 2.4, 0.66},
		{"window.Calls.Record", callsRecord(), sinceAndAdd(), failsafePermits("", failsafeTimed()), 1.75, 0.54},
		{"limiter.Group, Get + Take", groupTakes(1), sinceFloor(), throttledTakes(1), 4.7, 0.93},
		{"weir.Do, success", gateDo(), sinceAndAdd(), rateAndGobreaker(), 4.9, 0.60},
	}
}
