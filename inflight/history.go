package inflight

import "time"

// history remembers spans of time, the calls that began in each, and how many of those are still in
// flight. So calls are compared by when they began, and a call that has not ended is known to run.
// Of calls as they end, the first ones would all be short.
type history struct {
	spans [12]callSpan
	last  int
}

type callSpan struct {
	from    time.Duration
	started uint64  // calls that had started by then
	gone    float32 // calls that began in the span and are over
	ended   float32 // calls that ended in the span, and say something about the service
}

// add begins a span, unless the present one is too short.
func (h *history) add(now time.Duration, started uint64, shortest time.Duration) {
	if now-h.spans[h.last].from >= shortest {
		h.last = (h.last + 1) % len(h.spans)
		h.spans[h.last] = callSpan{from: now, started: started}
	}
}

// back returns the span that is i spans before the present one.
func (h *history) back(i int) *callSpan { return &h.spans[(h.last+len(h.spans)-i)%len(h.spans)] }

// ended counts n calls that began at a time and are over. Of these, useful say something about the
// service.
func (h *history) ended(began time.Duration, n, useful float64) {
	h.back(0).ended += float32(useful)
	for i := range h.spans {
		if s := h.back(i); began >= s.from {
			s.gone += float32(n)
			return
		}
	}
}

// rate returns how many calls end per nanosecond, over the last n of them if possible.
func (h *history) rate(now time.Duration, n float64) (rate float64) {
	sum := 0.0
	for i := range h.spans {
		s := h.back(i)
		sum += float64(s.ended)
		if s.from >= now {
			continue
		}
		rate = max(sum, 1) / float64(now-s.from)
		if sum >= n {
			break
		}
	}
	return max(rate, 1/float64(time.Hour))
}

// younger returns how many of the calls in flight began after about a time.
func (h *history) younger(t time.Duration, started uint64, inFlight int) (running float64) {
	for i := range h.spans {
		s := h.back(i)
		running += max(float64(started-s.started)-float64(s.gone), 0)
		started = s.started
		if s.from <= t {
			break
		}
	}
	return min(running, float64(inFlight))
}
