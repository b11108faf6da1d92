package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir/limiter"
)

// strict is a limiter that bounds any window, with the times of what it admitted.
type strict struct {
	name    string
	limiter limiter.Limiter
	limit   int
	span    time.Duration

	mu            sync.Mutex
	before, after []time.Duration // when an admitted request was begun, and was over
	began         time.Time
}

// newStricts makes one of each kind.
func newStricts(r *rand.Rand) []*strict {
	limit, span := 20+r.IntN(200), time.Duration(20+r.IntN(200))*time.Millisecond
	kinds := map[string]limiter.Limiter{
		"SlidingWindow": limiter.NewSlidingWindow(limiter.WindowConfig{Limit: limit, Window: span}),
		"SlidingLog":    limiter.NewSlidingLog(limiter.WindowConfig{Limit: limit, Window: span}),
	}
	var all []*strict
	for name, l := range kinds {
		all = append(all, &strict{
			name: fmt.Sprintf("%s of %d in %v", name, limit, span), limiter: l, limit: limit, span: span, began: time.Now(),
		})
	}
	return all
}

func (s *strict) visit() {
	before := time.Since(s.began)
	if !s.limiter.Take(1).OK {
		return
	}
	after := time.Since(s.began)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.after = append(s.before, before), append(s.after, after)
}

// audit looks for a window that holds too many. When exactly a request was admitted is not
// known, but the n-th was not before the n-th beginning, nor after the n-th end.
func (s *strict) audit(faults *faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.before)
	slices.Sort(s.after)
	for i := s.limit; i < len(s.after); i++ {
		if s.after[i]-s.before[i-s.limit] < s.span {
			faults.add("window", "%s: %d admitted within %v", s.name, s.limit+1, s.after[i]-s.before[i-s.limit])
		}
	}
	if keep := len(s.after) - 2*s.limit; keep > 0 { // enough for those that come
		s.before, s.after = slices.Delete(s.before, 0, keep), slices.Delete(s.after, 0, keep)
	}
}
