package fleet

import (
	"errors"
	"fmt"
	"time"
)

// SlidingWindow admits for each key at most Limit permits in any window of length Window, wherever it
// begins, by the server's clock. It counts in Buckets parts of the span and one more, so permits
// come back up to a part later than they might: with 10 parts, a tenth of the span. RetryAfter is
// minimal for what it counts, to the microsecond.
type SlidingWindow struct {
	Limit   int           // the most permits in any window, from 1 to 2^31-1. Must be given.
	Window  time.Duration // the length of a window, whole µs from 1 ms to 10 years. Must be given.
	Buckets int           // into how many parts the span is divided, up to 1000, none shorter than a µs. Default: 10.
}

const (
	defaultParts = 10
	maxParts     = 1000
)

func (s SlidingWindow) compile() (scopedLimit, error) {
	err := validateWindow(s.Limit, s.Window)
	if s.Buckets < 0 || s.Buckets > maxParts {
		err = errors.Join(err, fmt.Errorf("fleet: Buckets is %d, must lie between 1 and %d (or be 0 for the default)", s.Buckets, maxParts))
	}
	if s.Buckets == 0 {
		s.Buckets = defaultParts
	}
	return scopedLimit{limitSpec: slidingWindowSpec{s}}, err
}

type slidingWindowSpec struct{ SlidingWindow }

func (r slidingWindowSpec) scriptName() string                    { return "slidingwindow" }
func (r slidingWindowSpec) redisKeys(base string) []string        { return []string{base} }
func (r slidingWindowSpec) maxTake() int                          { return r.Limit }
func (r slidingWindowSpec) longRunRate() (float64, time.Duration) { return float64(r.Limit), r.Window }

func (r slidingWindowSpec) scriptArgs() []any {
	width := (r.Window.Microseconds() + int64(r.Buckets) - 1) / int64(r.Buckets)
	return []any{r.Limit, r.Buckets, width}
}
