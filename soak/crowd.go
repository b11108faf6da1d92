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

// crowd is a group of gates whose keys come and go, more of them than it has room for.
type crowd struct {
	group   *weir.Group[string]
	service service
	began   time.Time
	faults  *faults
	always  atomic.Int64 // calls of the one key that is always there

	made, ran, refused atomic.Int64
}

const (
	crowdRoom = 500
	crowdRate = 100
	resident  = "resident" // the key that is always there
)

func newCrowd(faults *faults) *crowd {
	return &crowd{began: time.Now(), faults: faults, group: weir.NewGroup[string]("crowd", weir.GroupConfig{
		MaxKeys: crowdRoom, MaxSeries: 50,
		Gate: weir.Config{Rate: limiter.PerSecond(crowdRate), Burst: 10, Breaker: breaker.Config{
			Window: 100 * time.Millisecond, MinCalls: 5, Cooldown: 20 * time.Millisecond,
		}},
	})}
}

func (c *crowd) visit(ctx context.Context, r *rand.Rand) {
	defer catch()
	key := resident
	if r.IntN(20) > 0 {
		key = fmt.Sprintf("%d at %d", int(r.ExpFloat64()*crowdRoom), time.Since(c.began)/time.Minute)
	}
	c.made.Add(1)
	ran := false
	err := c.group.Get(key).Run(ctx, func(ctx context.Context) error {
		ran = true
		c.ran.Add(1)
		if key == resident {
			c.always.Add(1)
			return nil
		}
		return c.service.call(ctx)
	})
	if !ran && errors.Is(err, weir.ErrRefused) {
		c.refused.Add(1)
	}
}

func (c *crowd) audit() {
	if n := c.group.Len(); n > crowdRoom {
		c.faults.add("room", "the group has %d members", n)
	}
	if ran, most := c.always.Load(), 10+crowdRate*time.Since(c.began).Seconds()+1; float64(ran) > most {
		c.faults.add("limit", "one key of the group admitted %d, at most %.1f", ran, most)
	}
	ran := c.ran.Load() // before the tokens, of which each call had one before it ran
	if a := c.group.Admissions(); a.Allowed+a.Waited < ran {
		c.faults.add("tokens", "the group: %d calls ran with %d tokens", ran, a.Allowed+a.Waited)
	}
}

// evictions returns how many keys the group has evicted.
func (c *crowd) evictions() (n float64) {
	for s, v := range c.group.Observe {
		if s.Instrument.Name == "weir.breaker.group.evictions" {
			n = v
		}
	}
	return n
}

func (c *crowd) settle() {
	if made, ended := c.made.Load(), c.ran.Load()+c.refused.Load(); made != ended {
		c.faults.add("lost calls", "the group: %d calls made, %d ran or were refused", made, ended)
	}
}
