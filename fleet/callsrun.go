package fleet

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Run exchanges counts with Redis until ctx ends, and then returns nil. The first exchange is
// immediate. The second follows after a random part of half the interval, so that the nodes do not
// send at the same time. After that there are two exchanges per interval, and only four per Span
// while this node has had no calls for a Span. An exchange that takes longer delays the next. All
// Calls of a link with the same Interval share their round trips.
//
// When ctx ends, Run flushes a last time, which takes up to the Timeout of the link. Wait until Run
// has returned, or the calls not yet flushed are lost. Run may be called again afterwards. It
// returns an error at once if it is already running.
func (c *Calls) Run(ctx context.Context) error {
	if !c.running.TryLock() {
		return fmt.Errorf("fleet: Run of Calls %q is already running", c.name)
	}
	defer c.running.Unlock()
	// Exchanges have a goroutine of their own, so that calls are captured on time even if an
	// exchange takes long.
	due := make(chan struct{}, 1)
	var exchanges sync.WaitGroup
	exchanges.Go(func() {
		for range due {
			c.exchange(ctx)
		}
	})
	c.captureRepeatedly(ctx, due)
	close(due)
	exchanges.Wait()
	c.capture()
	c.exchange(context.WithoutCancel(ctx))
	return nil
}

// captureRepeatedly captures calls and signals that an exchange is due, until ctx ends.
func (c *Calls) captureRepeatedly(ctx context.Context, due chan<- struct{}) {
	// The period is half an interval, because a call waits for the next flush of its own node, and
	// then for the next flush of another node.
	period := c.config.Interval / 2
	next := c.now() + c.link.untilFlush(period)
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for {
		if c.capture() || c.link.flushNumber(period)%c.config.idlePeriods() == 0 {
			select {
			case due <- struct{}{}:
			default: // an exchange is due already
			}
		}
		timer.Reset(next - c.now())
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		if next += period; next < c.now() { // periods missed during a stall are skipped
			next = c.now() + c.link.untilFlush(period)
		}
	}
}

// flushNumber returns the number of the current period of the flushes of a link. All Calls of a
// link with the same period flush when it changes, and share a round trip.
func (l *Link) flushNumber(period time.Duration) int64 {
	return int64((time.Since(l.epoch) + l.flushPhase) / period)
}

// untilFlush returns when the next period begins.
func (l *Link) untilFlush(period time.Duration) time.Duration {
	return period - (time.Since(l.epoch)+l.flushPhase)%period
}

// capture captures calls, and reports whether the node is in use: before its first exchange, and if
// it has had calls within the Span.
func (c *Calls) capture() (used bool) {
	own := c.current.Load().ownCalls() // without the lock, because it calls the sources
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.readClock(own)
	c.state.capture(now, own)
	c.publish(now)
	return c.flushes == 0 || c.state.usedAt > 0 && now-c.state.usedAt <= c.config.Span || c.state.inFlight != nil
}
