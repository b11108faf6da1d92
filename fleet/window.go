package fleet

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// FixedWindow allows Limit tokens per key in each window of time, by the server's clock. Windows
// are aligned to Unix time: windows of a minute begin on the minute, windows of a day at midnight
// UTC.
//
// It does what INCR and EXPIRE do, without their flaw that a crash between the two commands blocks
// a key forever. The end of one window and the beginning of the next can together allow twice Limit
// within a moment. RetryAfter is the shortest possible wait, accurate to a microsecond. If the
// limit changes, what was taken still counts, unless Window becomes shorter: then a new window
// begins.
type FixedWindow struct {
	// Limit is the maximum number of tokens in a window, from 1 to 2^31-1. Required.
	Limit int
	// Window is the length of a window, from 1ms to 10 years in whole microseconds. Required.
	Window time.Duration
}

func (f FixedWindow) compile() (limitSpec, error) {
	return windowSpec("fixedwindow", f.Limit, f.Window, f.Window.Microseconds()), validateWindow(f.Limit, f.Window)
}

const maxWindow = 10 * 365 * 24 * time.Hour

// validateWindow returns an error that names every invalid field of a window.
func validateWindow(limit int, window time.Duration) error {
	var faults []error
	if limit < 1 || limit > math.MaxInt32 {
		faults = append(faults, fmt.Errorf("fleet: Limit is %d, must lie between 1 and %d", limit, math.MaxInt32))
	}
	if window < time.Millisecond || window > maxWindow || window%time.Microsecond != 0 {
		faults = append(faults, fmt.Errorf("fleet: Window is %s, must be whole microseconds between 1ms and %s", window, maxWindow))
	}
	return errors.Join(faults...)
}

// SlidingWindow allows at most Limit tokens per key in any span of length Window, wherever it
// begins, by the server's clock. It counts in buckets of Window/Buckets, and keeps one more bucket
// than fits into the window. Tokens therefore return up to one bucket later than they could: with
// 10 buckets, up to a tenth of the window. RetryAfter is exact for what the buckets hold.
type SlidingWindow struct {
	// Limit is the maximum number of tokens in any window, from 1 to 2^31-1. Required.
	Limit int
	// Window is the length of a window, from 1ms to 10 years in whole microseconds. Required.
	Window time.Duration
	// Buckets is the number of buckets per window, from 1 to 1000. Default 10.
	Buckets int
}

const (
	defaultBuckets = 10
	maxBuckets     = 1000
)

func (s SlidingWindow) compile() (limitSpec, error) {
	err := validateWindow(s.Limit, s.Window)
	if s.Buckets < 0 || s.Buckets > maxBuckets {
		err = errors.Join(err, fmt.Errorf("fleet: Buckets is %d, must lie between 1 and %d (or be 0 for the default)", s.Buckets, maxBuckets))
	}
	if err != nil {
		return limitSpec{}, err
	}
	if s.Buckets == 0 {
		s.Buckets = defaultBuckets
	}
	width := (s.Window.Microseconds() + int64(s.Buckets) - 1) / int64(s.Buckets)
	return windowSpec("slidingwindow", s.Limit, s.Window, s.Buckets, width), nil
}

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
