package fleet

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
)

// SlidingLog admits for each key Limit permits in any window of length Window, and exactly that, by
// the server's clock: it remembers when each was taken, and each comes back when it is Window old.
// It costs up to 130 bytes in Redis for each request in the window. RetryAfter is minimal, to the
// microsecond.
//
// It is what Redisson's RRateLimiter does. Package redisson has what that does besides.
type SlidingLog struct {
	Limit  int           // the most permits in any window, from 1 to 2^31-1. Must be given.
	Window time.Duration // the length of a window, whole µs from 1 ms to 10 years. Must be given.
}

// keepRate is how long a rate that was set is kept after the key was last used, and at least for its window.
const keepRate = 24 * time.Hour

func (g SlidingLog) compile() (scopedLimit, error) {
	return scopedLimit{limitSpec: slidingLogSpec{SlidingLog: g}}, validateWindow(g.Limit, g.Window)
}

// clientLog is a SlidingLog for each client: see package redisson.
type clientLog struct {
	SlidingLog
	client string
}

func (c clientLog) compile() (scopedLimit, error) {
	faults := []error{validateWindow(c.Limit, c.Window)}
	if strings.ContainsAny(c.client, "{}") {
		faults = append(faults, fmt.Errorf("fleet: the client is %q, must have no braces", c.client))
	}
	if c.client == "" {
		c.client = rand.Text()
	}
	return scopedLimit{limitSpec: slidingLogSpec{c.SlidingLog, ":client:" + c.client}}, errors.Join(faults...)
}

type slidingLogSpec struct {
	SlidingLog
	clientSuffix string // of the key of the log
}

func (r slidingLogSpec) scriptName() string                    { return "slidinglog" }
func (r slidingLogSpec) maxTake() int                          { return r.Limit }
func (r slidingLogSpec) longRunRate() (float64, time.Duration) { return float64(r.Limit), r.Window }
func (r slidingLogSpec) redisKeys(base string) []string {
	return []string{base + r.clientSuffix, base + ":rate"}
}

func (r slidingLogSpec) scriptArgs() []any {
	return []any{r.Limit, r.Window.Microseconds(), max(keepRate, r.Window).Milliseconds()}
}
