package weirgrpc

import (
	"sync"
	"time"
)

// sampler chooses the refusals that are logged: up to one per second with the same cause, and up to
// 10 per second. So a breaker that refuses many requests does not hide the refusals of another one,
// and memory is bounded whatever the keys are. Package weirhttp has the same sampler.
type sampler struct {
	mu      sync.Mutex
	leftOut int64 // since the last record
	recent  [10]struct {
		cause sampled
		until time.Time // a second after the record
	}
}

// sampled says what refused a call. The sampler limits the records of each value separately.
type sampled struct {
	reason    reason
	name, key string // key is the method of the call if the key is not known
}

// sample reports whether to log a refusal, and how many were left out since the last that was
// logged.
func (s *sampler) sample(c sampled) (leftOut int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, free := time.Now(), -1
	for i := range s.recent {
		switch r := &s.recent[i]; {
		case !now.Before(r.until), r.until.Sub(now) > time.Second: // or the clock has gone back
			free = i
		case r.cause == c:
			s.leftOut++
			return 0, false
		}
	}
	if free < 0 {
		s.leftOut++
		return 0, false
	}
	s.recent[free].cause, s.recent[free].until = c, now.Add(time.Second)
	leftOut, s.leftOut = s.leftOut, 0
	return leftOut, true
}
