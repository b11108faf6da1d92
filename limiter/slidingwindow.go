package limiter

import (
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/weir-go/weir/internal/ring"
)

// SlidingWindowConfig configures a [SlidingWindow].
type SlidingWindowConfig struct {
	// Limit is the most permits in any window, from 1 to 2^31-1. Must be given.
	Limit int
	// Window is the length of a window, from 1 ns to 36 years. Must be given.
	Window time.Duration
	// Buckets is the number of parts the window is divided into, up to 100,000. Default 10.
	Buckets int
	// CountRefused counts refused requests as well, so that a caller that keeps asking stays locked
	// out. Requests to a [Joint] count too, whichever member refused them, but requests that wait do
	// not. Default false.
	CountRefused bool
	// MaxWaiters is the most callers that may wait at once; the next gets ErrQueueFull. Default: no
	// bound.
	MaxWaiters int
	// Name stands in errors and metrics. A limiter with a name keeps statistics and is a [stat.Source].
	// Default: no name and no statistics.
	Name string
	// Named is what a limiter with a name does besides. Default [NamedConfig]'s own.
	Named NamedConfig
}

const maxBuckets = 100_000

// Validate returns nil for a configuration that makes sense, and otherwise an error that names all faults.
func (c SlidingWindowConfig) Validate() error {
	err := c.window().Validate()
	if c.Buckets < 0 || c.Buckets > maxBuckets {
		err = errors.Join(err, fmt.Errorf("limiter: Buckets is %d, must lie between 1 and %d (or be 0 for the default)", c.Buckets, maxBuckets))
	}
	return err
}

func (c SlidingWindowConfig) window() FixedWindowConfig {
	return FixedWindowConfig{
		Limit: c.Limit, Window: c.Window, CountRefused: c.CountRefused, MaxWaiters: c.MaxWaiters,
		Name: c.Name, Named: c.Named,
	}
}

// SlidingWindow admits at most Limit permits in any window, wherever it begins. It counts in
// Buckets parts of the window and one more, so permits come back up to a part later than they might:
// with 10 parts, a tenth of the window.
//
//	      ┌────────── Window ──────────┐
//	|  3  |  0  |  5  |  1  |  0  |  2  |
//	└─ still counts, though only a part of it lies in the window
//
// It costs 16 bytes for each part and two more. Its RetryAfter is
// minimal for what it counts. All methods are safe for concurrent use; only Wait and WaitAtMost block.
type SlidingWindow struct{ *meter }

// NewSlidingWindow makes a limiter with nothing taken. It panics with the error of c.Validate where there is one.
func NewSlidingWindow(c SlidingWindowConfig) *SlidingWindow { return NewSlidingWindowAt(c, time.Now()) }

// NewSlidingWindowAt makes a limiter that is driven by given times, from t0 on.
func NewSlidingWindowAt(c SlidingWindowConfig, t0 time.Time) *SlidingWindow {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if c.Buckets == 0 {
		c.Buckets = 10
	}
	width := (int64(c.Window) + int64(c.Buckets) - 1) / int64(c.Buckets)
	r := &ringRule{ring: ring.New(width, c.Buckets, 1), back: int64(c.Buckets), limit: int64(c.Limit)}
	return &SlidingWindow{newMeter(c.window(), t0, r)}
}

// ringRule counts the newest bucket and as many before it as the window has: total is the sum over all
// time, and the ring remembers what it was when each bucket began.
type ringRule struct {
	ring   *ring.Ring
	back   int64
	limit  int64
	total  int64
	begun  bool
	origin int64 // where the bucket of the first time that was given begins; the ring counts from there
}

func (r *ringRule) used(at time.Duration) int64 {
	if !r.begun {
		r.begun, r.origin = true, r.ring.Start(r.ring.Bucket(int64(at)))
	}
	r.ring.Advance(r.bucket(at), []int64{r.total})
	return r.total - r.before(r.ring.Newest())
}

func (r *ringRule) bucket(at time.Duration) int64 { return r.ring.Bucket(int64(at) - r.origin) }

func (r *ringRule) counts(at time.Duration) bool { return r.bucket(at) >= r.ring.Newest()-r.back }

// before is the total that no longer counts when b is the newest bucket.
func (r *ringRule) before(b int64) int64 {
	if b -= r.back; b <= r.ring.Newest() {
		return r.ring.Row(b)[0].Load()
	}
	return r.total
}

func (r *ringRule) add(n int64) {
	here := r.total - r.ring.Row(r.ring.Newest())[0].Load()
	r.total += min(n, r.limit-here) // refused ones make no bucket more than full
}

func (r *ringRule) giveBack(n int64) {
	newest := r.ring.Newest()
	gone := r.before(newest)
	least := gone + min(n, r.total-gone)
	for b := newest - r.back; b <= newest; b++ {
		if row := &r.ring.Row(b)[0]; row.Load() < least {
			row.Store(least)
		}
	}
}

func (r *ringRule) due(n int64) time.Duration {
	laps := max(n-1, 0) / r.limit
	gone := r.total - (r.limit - (n - laps*r.limit)) // as much must no longer count
	newest := r.ring.Newest()
	steps := sort.Search(int(r.back)+1, func(i int) bool { return r.before(newest+int64(i)) >= gone })
	return later(time.Duration(r.origin+r.ring.Start(newest+int64(steps))), laps, time.Duration(r.back*r.ring.Width()))
}
