package fleet

import (
	"context"
	"strconv"
	"time"
)

var callsScript = newScript("calls")

// exchange sends one flush and takes the answer. It is called by one goroutine at a time.
func (c *Calls) exchange(ctx context.Context) {
	for again := true; again; {
		c.mu.Lock()
		now := c.now()
		again = c.state.inFlight != nil // what waits behind a flush in doubt goes out at once when that has arrived
		args := c.state.scriptArgs(c.config, now, "")
		c.mu.Unlock()
		reply, err := c.link.eval(ctx, callsScript, []string{c.key}, args)
		if err == nil && !validLength(reply) {
			err = &StoreError{link: c.link.name, Fault: faultOther}
		}
		if err != nil && ctx.Err() != nil {
			return // Run ends; that is no failure
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
		c.publish(c.now())
		c.mu.Unlock()
	}
}

// args are what the script is given: see there. The time is for tests; without one it is
// the server's.
func (l *nodeState) scriptArgs(c CallsConfig, now time.Duration, server string) []any {
	flush, sent := l.nextFlush(now), ""
	if l.latest != nil {
		sent = micros(l.serverTime(now))
	}
	args := make([]any, 0, 7+7*len(flush))
	args = append(args, micros(l.width), c.Buckets, server, c.lifetime().Milliseconds(), l.node, l.number, sent)
	for _, d := range flush {
		args = append(args, micros(now-d.at))
		for _, n := range d.callCounts {
			args = append(args, n)
		}
	}
	return args
}

func micros(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }

// The numbers of an answer before those of the buckets, and of each bucket.
const replyHead, replyBucket = 16, 7

// wholeReading reports whether an answer has as many numbers as one can have.
func validLength(reply []int64) bool {
	return len(reply) >= replyHead && (len(reply)-replyHead)%replyBucket == 0
}

// readingOf reads the script's answer to what was sent at the given moment.
func parseReply(reply []int64, asked time.Duration) *serverReply {
	r := &serverReply{
		asked: asked, server: time.Duration(reply[0]) * time.Microsecond, created: reply[1], nodeKnown: reply[2] == 1,
		total: callCounts(reply[3:9]), own: callCounts(reply[9:15]), late: reply[15],
	}
	for rest := reply[replyHead:]; len(rest) > 0; rest = rest[replyBucket:] {
		r.buckets = append(r.buckets, bucket{rest[0], callCounts(rest[1:replyBucket])})
	}
	return r
}
