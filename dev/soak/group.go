package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// groupUnderTest is a group of gates with changing keys, more of them than it has room for.
type groupUnderTest struct {
	group         *weir.Group[string]
	service       service
	began         time.Time
	faults        *faults
	residentCalls atomic.Int64 // calls with the key resident

	made, ran, refused atomic.Int64
}

const (
	maxKeys     = 500
	ratePerKey  = 100
	residentKey = "resident" // the key that is always in use
)

func newGroup(faults *faults) *groupUnderTest {
	return &groupUnderTest{began: time.Now(), faults: faults, group: weir.NewGroup[string]("crowd", weir.GroupConfig{
		MaxKeys: maxKeys, MaxSeries: 50,
		Gate: weir.Config{Rate: limiter.PerSecond(ratePerKey), Burst: 10, Breaker: breaker.Config{
			Window: 100 * time.Millisecond, MinCalls: 5, Cooldown: 20 * time.Millisecond,
		}},
	})}
}

func (g *groupUnderTest) makeRequest(ctx context.Context, r *rand.Rand) {
	defer recoverFailed()
	key := residentKey
	if r.IntN(20) > 0 {
		key = fmt.Sprintf("%d at %d", int(r.ExpFloat64()*maxKeys), time.Since(g.began)/time.Minute)
	}
	g.made.Add(1)
	ran := false
	err := g.group.Get(key).Run(ctx, func(ctx context.Context) error {
		ran = true
		g.ran.Add(1)
		if key == residentKey {
			g.residentCalls.Add(1)
			return nil
		}
		return g.service.call(ctx)
	})
	if !ran && errors.Is(err, weir.ErrRefused) {
		g.refused.Add(1)
	}
}

func (g *groupUnderTest) audit() {
	if n := g.group.Len(); n > maxKeys {
		g.faults.add("room", "the group has %d members", n)
	}
	if ran, limit := g.residentCalls.Load(), 10+ratePerKey*time.Since(g.began).Seconds()+1; float64(ran) > limit {
		g.faults.add("limit", "one key of the group allowed %d, at most %.1f", ran, limit)
	}
	ran := g.ran.Load() // read before the tokens: each call took one before it ran
	if a := g.group.Stats(); a.Allowed+a.Waited < ran {
		g.faults.add("tokens", "the group: %d calls ran with %d tokens", ran, a.Allowed+a.Waited)
	}
}

// evictions returns how many keys the group has evicted.
func (g *groupUnderTest) evictions() (n float64) {
	for s, v := range g.group.Observe {
		if s.Instrument.Name == "weir.breaker.group.evictions" {
			n = v
		}
	}
	return n
}

func (g *groupUnderTest) checkTotals() {
	if made, ended := g.made.Load(), g.ran.Load()+g.refused.Load(); made != ended {
		g.faults.add("lost calls", "the group: %d calls made, %d ran or were refused", made, ended)
	}
}
