package fleet

import (
	"context"
	"fmt"
	"slices"
	"strconv"
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

var callsScript = newScript("calls")

// exchange sends one flush and processes the reply. If this was an earlier flush that is sent
// again, a second flush follows with the calls that were pending meanwhile. Only one goroutine at a
// time may call it.
func (c *Calls) exchange(ctx context.Context) {
	for again := true; again; {
		c.mu.Lock()
		now := c.readClock(c.state.captured)
		again = c.state.inFlight != nil
		args := c.state.scriptArgs(c.config, now, "")
		c.mu.Unlock()
		reply, err := c.link.flush(ctx, callsScript, []string{c.key}, args)
		if err == nil && !isCallsReply(reply, c.config.Buckets) {
			err = c.link.invalidReply()
		}
		if err != nil && ctx.Err() != nil {
			return // Run is ending, which is not a failure
		}
		c.mu.Lock()
		if err == nil {
			c.state.receive(parseReply(reply, now))
			c.answeredAt = now
			c.flushes++
		} else {
			c.failed++
			again = false
		}
		c.lastErr = err
		c.publish(c.readClock(c.state.captured))
		c.mu.Unlock()
	}
}

// scriptArgs returns the arguments of calls.lua. server is the server's time in tests, and
// otherwise empty.
func (s *nodeState) scriptArgs(c CallsConfig, now time.Duration, server string) []any {
	flush, sent := s.nextFlush(now), ""
	if s.knowsServerTime() {
		sent = microsText(s.serverTime(now))
	}
	args := make([]any, 0, 7+7*len(flush))
	args = append(args, microsText(s.width), c.Buckets, server, c.lifetime().Milliseconds(), s.node, s.number, sent)
	for _, d := range flush {
		args = append(args, microsText(now-d.at))
		for _, n := range d.callCounts {
			args = append(args, n)
		}
	}
	return args
}

func microsText(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }

// headValues is the number of values in a reply before the buckets, and valuesPerBucket is the
// number of values of each bucket.
const headValues, valuesPerBucket = 16, 7

// maxReplyValue is the largest number of a reply, because scripts have doubles.
const maxReplyValue = 1 << 53

// isCallsReply reports whether a reply has as many numbers as it should, and all in their range.
func isCallsReply(reply []int64, buckets int) bool {
	if len(reply) < headValues || (len(reply)-headValues)%valuesPerBucket != 0 || (len(reply)-headValues)/valuesPerBucket > buckets {
		return false
	}
	return !slices.ContainsFunc(reply, func(v int64) bool { return !isWithin(v, 0, maxReplyValue) })
}

// parseReply parses the reply to a flush sent at the given time.
func parseReply(reply []int64, asked time.Duration) *serverReply {
	r := &serverReply{
		asked: asked, server: time.Duration(reply[0]) * time.Microsecond, created: reply[1], nodeKnown: reply[2] == 1,
		total: callCounts(reply[3:9]), own: callCounts(reply[9:15]), late: reply[15],
	}
	for rest := reply[headValues:]; len(rest) > 0; rest = rest[valuesPerBucket:] {
		r.buckets = append(r.buckets, bucket{rest[0], callCounts(rest[1:valuesPerBucket])})
	}
	return r
}
