package limiter

import (
	"cmp"
	"sort"
	"time"

	"github.com/weir-go/weir/internal/ring"
)

// SlidingWindow allows at most Limit tokens in any window, wherever it begins. The window has
// Buckets parts, and tokens are counted in these parts and in one part more. So a token comes back
// up to one part late: with 10 parts, after up to 1.1 windows.
//
//	      ┌────────── Window ──────────┐
//	|  3  |  0  |  5  |  1  |  0  |  2  |
//	└─ counted, although only a part of it is in the window
//
// It uses 16 bytes for each part and for two more. RetryAfter is minimal for the tokens it counts.
// All methods are safe for concurrent use. Only Wait and WaitAtMost block. The zero value does not
// work: use NewSlidingWindow.
type SlidingWindow struct{ *windowLimiter }

// NewSlidingWindow returns a limiter with no tokens taken. It panics with the error of c.Validate
// if c is invalid.
func NewSlidingWindow(c WindowConfig) *SlidingWindow { return NewSlidingWindowAt(c, time.Now()) }

// NewSlidingWindowAt is like NewSlidingWindow, for use with TakeAt from t0 on.
func NewSlidingWindowAt(c WindowConfig, t0 time.Time) *SlidingWindow {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	buckets := cmp.Or(c.Buckets, defaultBuckets)
	width := (int64(c.Window) + int64(buckets) - 1) / int64(buckets)
	return &SlidingWindow{newWindowLimiter(c, t0, newRingCounter(width, int64(buckets), int64(c.Limit)))}
}

// ringCounter counts the tokens in the newest bucket and the span buckets before it. The ring
// holds, for each bucket, the value of total when the bucket began.
type ringCounter struct {
	ring   *ring.Ring
	span   int64
	limit  int64
	total  int64 // all tokens ever counted
	begun  bool
	origin int64 // the start of the bucket of the first time, from which the ring counts
}

func newRingCounter(width, span, limit int64) *ringCounter {
	return &ringCounter{ring: ring.New(width, int(span), 1), span: span, limit: limit}
}

func (r *ringCounter) renewed() windowCounter {
	return newRingCounter(r.ring.Width(), r.span, r.limit)
}

func (r *ringCounter) advance(at time.Duration) int64 {
	if !r.begun {
		r.begun, r.origin = true, r.ring.Start(r.ring.Bucket(int64(at)))
	}
	r.ring.Advance(r.bucket(at), []int64{r.total})
	return r.total - r.totalBefore(r.ring.Newest())
}

func (r *ringCounter) bucket(at time.Duration) int64 { return r.ring.Bucket(int64(at) - r.origin) }

func (r *ringCounter) covers(at time.Duration) bool { return r.bucket(at) >= r.ring.Newest()-r.span }

// totalBefore returns the part of total that no longer counts once bucket is the newest.
func (r *ringCounter) totalBefore(bucket int64) int64 {
	if bucket -= r.span; bucket <= r.ring.Newest() {
		return r.ring.Row(bucket)[0].Load()
	}
	return r.total
}

// add stops when the newest bucket alone has reached the limit, so that refused requests are never
// counted beyond that.
func (r *ringCounter) add(n int64) {
	inNewest := r.total - r.ring.Row(r.ring.Newest())[0].Load()
	r.total += min(n, r.limit-inNewest)
}

func (r *ringCounter) refund(n int64) {
	newest := r.ring.Newest()
	expired := r.totalBefore(newest)
	least := expired + min(n, r.total-expired)
	for b := newest - r.span; b <= newest; b++ {
		if total := &r.ring.Row(b)[0]; total.Load() < least {
			total.Store(least)
		}
	}
}

func (r *ringCounter) earliest(n int64) time.Duration {
	windows := max(n-1, 0) / r.limit
	expired := r.total - (r.limit - (n - windows*r.limit)) // how much of total must no longer count
	newest := r.ring.Newest()
	steps := sort.Search(int(r.span)+1, func(i int) bool { return r.totalBefore(newest+int64(i)) >= expired })
	begin := time.Duration(r.origin + r.ring.Start(newest+int64(steps)))
	// a token that is taken as soon as one comes back, when a bucket begins, counts in span more
	return addWindows(begin, windows, time.Duration((r.span+1)*r.ring.Width()))
}
