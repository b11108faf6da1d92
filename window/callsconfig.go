package window

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/weir-go/weir/internal/tally"
)

// CallsConfig configures a window over calls. The zero value is a window over 10s in 10 buckets.
type CallsConfig struct {
	// Name is the name of the window in metrics. Default "": the window has no metrics.
	Name string
	// Span is the length of the window, from 1ms to 30 days, as in [Config]. Default 10s.
	Span time.Duration
	// Buckets is the number of buckets in the span, from 1 to 100,000, as in [Config]. Default 10.
	Buckets int
	// Last makes a window over the last so many successes and failures, from 1 to 100,000, instead
	// of a span of time. Span and Buckets must then be 0. Default 0: a window over time.
	Last int
	// Slow is the duration above which a call counts as slow. Default 0: no call is slow.
	Slow time.Duration
	// Latency keeps a histogram of the duration of calls, which takes 5 kB from the first call on,
	// and 2 kB per twelfth of the span with calls. A window over the last calls cannot keep one.
	// Default false.
	Latency bool
}

// maxLast bounds CallsConfig.Last.
const maxLast = 100_000

// Validate returns an error that names every field that is out of bounds, or nil if there is none.
func (c CallsConfig) Validate() error {
	var errs []error
	invalid := func(format string, args ...any) { errs = append(errs, fmt.Errorf("window: "+format, args...)) }
	switch {
	case c.Last < 0 || c.Last > maxLast:
		invalid("Last is %d, must lie between 1 and %d, or 0 for a window over time", c.Last, maxLast)
	case c.Last == 0:
		errs = append(errs, c.overTime().Validate())
	default:
		if c.Span != 0 || c.Buckets != 0 {
			invalid("Span is %v and Buckets is %d, must both be 0 if Last is set", c.Span, c.Buckets)
		}
		if c.Latency {
			invalid("Latency is true, must be false if Last is set")
		}
	}
	if c.Slow < 0 {
		invalid("Slow is %v, must be at least 0", c.Slow)
	}
	return errors.Join(errs...)
}

// mustBeValid returns the config with defaults, and panics if it is not valid.
func (c CallsConfig) mustBeValid() CallsConfig {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if c.Last == 0 {
		t := c.overTime().mustBeValid()
		c.Span, c.Buckets = t.Span, t.Buckets
	}
	return c
}

func (c CallsConfig) overTime() Config { return Config{Span: c.Span, Buckets: c.Buckets} }

// newTally returns an empty tally. The config is valid and has its defaults.
func (c CallsConfig) newTally() *tally.Calls {
	slow := c.Slow
	if slow == 0 {
		slow = math.MaxInt64
	}
	if c.Last > 0 {
		return tally.NewLast(c.Last, slow)
	}
	t := tally.New(c.overTime().bucketWidth(), c.Buckets, slow)
	if c.Latency {
		t.TrackLatency()
	}
	return t
}
