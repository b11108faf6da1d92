package fleet

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
)

// SlidingLog allows exactly Limit tokens per key in any span of length Window, by the server's
// clock. It records when each token was taken, and a token returns when it is Window old. Each
// request in the window takes up to 130 bytes in Redis. RetryAfter is the shortest possible wait,
// accurate to a microsecond.
//
// It does what Redisson's RRateLimiter does. Package redisson adds limits per client, and rates
// that are set while the limiter is in use.
type SlidingLog struct {
	// Limit is the maximum number of tokens in any window, from 1 to 2^31-1. Required.
	Limit int
	// Window is the length of a window, from 1ms to 10 years in whole microseconds. Required.
	Window time.Duration
}

// logScript is the Lua file of a sliding log.
const logScript = "slidinglog"

// rateLifetime is how long Redis keeps a rate set by package redisson after the last use of its
// key. If the window is longer, Redis keeps the rate for the length of the window.
const rateLifetime = 24 * time.Hour

func (g SlidingLog) compile() (limitSpec, error) {
	s := windowSpec(logScript, g.Limit, g.Window, g.Window.Microseconds(), max(rateLifetime, g.Window).Milliseconds())
	s.keySuffixes = []string{"", ":rate"}
	return s, validateWindow(g.Limit, g.Window)
}

// clientLog is a SlidingLog per client: see package redisson.
type clientLog struct {
	SlidingLog
	client string
}

func (c clientLog) compile() (limitSpec, error) {
	s, err := c.SlidingLog.compile()
	if strings.ContainsAny(c.client, "{}") {
		err = errors.Join(err, fmt.Errorf("fleet: the client is %q, must have no braces", c.client))
	}
	if c.client == "" {
		c.client = rand.Text()
	}
	s.keySuffixes[0] = ":client:" + c.client
	return s, err
}
