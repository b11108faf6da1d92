package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir/limiter"
)

// windowUnderTest is a limiter with a bound for any window, and the times of the requests that it
// allowed.
type windowUnderTest struct {
	name    string
	limiter limiter.Limiter
	limit   int
	span    time.Duration

	mu            sync.Mutex
	before, after []time.Duration // when allowed requests began and ended
	began         time.Time
}

// newWindows returns one limiter of each kind.
func newWindows(r *rand.Rand) []*windowUnderTest {
	limit, span := 20+r.IntN(200), time.Duration(20+r.IntN(200))*time.Millisecond
	kinds := map[string]limiter.Limiter{
		"SlidingWindow": limiter.NewSlidingWindow(limiter.WindowConfig{Limit: limit, Window: span}),
		"SlidingLog":    limiter.NewSlidingLog(limiter.WindowConfig{Limit: limit, Window: span}),
	}
	var all []*windowUnderTest
	for name, l := range kinds {
		all = append(all, &windowUnderTest{
			name: fmt.Sprintf("%s of %d in %v", name, limit, span), limiter: l, limit: limit, span: span, began: time.Now(),
		})
	}
	return all
}

func (w *windowUnderTest) makeRequest() {
	before := time.Since(w.began)
	if !w.limiter.Take(1).OK {
		return
	}
	after := time.Since(w.began)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before, w.after = append(w.before, before), append(w.after, after)
}

// audit looks for a window with too many requests. The exact time at which a request was allowed is
// not known, but the n-th request was not allowed before the n-th request began, nor after the n-th
// request ended.
func (w *windowUnderTest) audit(faults *faults) {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.before)
	slices.Sort(w.after)
	for i := w.limit; i < len(w.after); i++ {
		if w.after[i]-w.before[i-w.limit] < w.span {
			faults.add("window", "%s: %d allowed within %v", w.name, w.limit+1, w.after[i]-w.before[i-w.limit])
		}
	}
	if keep := len(w.after) - 2*w.limit; keep > 0 { // enough for later requests
		w.before, w.after = slices.Delete(w.before, 0, keep), slices.Delete(w.after, 0, keep)
	}
}
