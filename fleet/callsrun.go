package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Run exchanges counts with the fleet until ctx ends, and then returns nil. The first exchange is
// immediate, the second follows after a random part of half the interval, so that the nodes do not
// send at the same time, and from then on there are two in each interval. An exchange that takes
// longer delays the next.
//
// When ctx ends, Run flushes a last time, which takes at most the link's Timeout: wait until Run has
// returned, or what is not flushed yet is lost. Run may be called again afterwards. It returns an
// error at once if it is running already.
func (c *Calls) Run(ctx context.Context) error {
	if !c.running.TryLock() {
		return fmt.Errorf("fleet: Run of Calls %q is running already", c.name)
	}
	defer c.running.Unlock()
	// Calls are taken up every time, however long an exchange lasts, so exchanges have
	// a goroutine of their own.
	due := make(chan struct{}, 1)
	var exchanges sync.WaitGroup
	exchanges.Go(func() {
		for range due {
			c.exchange(ctx)
		}
	})
	c.tick(ctx, due)
	close(due)
	exchanges.Wait()
	c.capture()
	c.exchange(context.WithoutCancel(ctx))
	return nil
}

// tick takes calls up and says that an exchange is due, until the context is done.
func (c *Calls) tick(ctx context.Context, due chan<- struct{}) {
	every := c.config.Interval / 2 // news waits for its own node's flush, and then for the next one of each other
	next := c.now() + rand.N(every)
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for {
		c.capture()
		select {
		case due <- struct{}{}:
		default: // one is due already
		}
		timer.Reset(next - c.now())
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		next = max(next+every, c.now()) // what was missed while the process stood still is not made up for
	}
}

func (c *Calls) capture() {
	own := c.current.Load().ownCalls() // before the lock: it calls what is followed
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	c.state.capture(now, own)
	c.publish(now)
}
