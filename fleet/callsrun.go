package fleet

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// Run exchanges what is counted with the fleet until the context is done: at once, then
// after some random part of half the interval, so that the nodes do not march in step, and
// from there on twice in every interval. While an exchange lasts longer, the next waits.
//
// When the context is done it flushes a last time, which takes as long as the link's
// Timeout at most: wait until Run has returned, or what is not flushed yet is lost. Run
// may be called again then. To call it while it runs panics.
func (c *Calls) Run(ctx context.Context) {
	if !c.running.TryLock() {
		panic(errors.New("fleet: Calls.Run is running already"))
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
	own := c.outlook.Load().own() // before the lock: it calls what is followed
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	c.ledger.capture(now, own)
	c.publish(now)
}
