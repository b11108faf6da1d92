package fleet

import (
	"context"
	"slices"
	"strconv"
	"time"
)

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
