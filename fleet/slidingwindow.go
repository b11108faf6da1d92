package fleet

import (
	"errors"
	"fmt"
	"time"
)

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
