package sim

import (
	"errors"
	"time"
)

// service is the simulated service. Only the driver changes it, with the lock held.
type service struct {
	*Service
	run     *run
	hosts   []*host
	inForce []bool // the faults
	cold    []coldState
	pending int // attempts that were sent and are not over for the service
}

// host is one host of the service, with the conditions of its faults.
type host struct {
	servers  int // that may begin work
	hung     bool
	down     bool
	failTime time.Duration // of a host that is down
	ends     time.Duration // of a fault that announces its end, or 0
	lost     float64       // the share of attempts that get no answer
	slower   []slowdown
	errors   []errorRate

	working []*attempt // in no order
	queue   []*attempt // waiting attempts, the first one first
}

// errorRate is a share of attempts that fail, and the time after which they fail, 0 for the usual
// time.
type errorRate struct {
	share    float64
	failTime time.Duration
	fault    *Fault // that it belongs to
}

// slowdown multiplies the time of a share of the attempts.
type slowdown struct {
	times, share float64
	fault        *Fault // that it belongs to
}

// attemptRecord is the service's record of an attempt.
type attemptRecord struct {
	index   int           // in host.working
	ends    time.Duration // when the server will have finished
	left    time.Duration // the remaining work, while the host hangs
	works   time.Duration // the total work on the attempt
	fails   bool
	failure error // of a host that has gone down meanwhile
	version int   // of the event that ends it
}

var (
	errFailed = errors.New("service: internal error")
	errReset  = errors.New("service: connection reset")
)

// unavailable is the error of a host that is down or has a full queue.
type unavailable struct {
	text       string
	retryAfter time.Duration
}

func (e *unavailable) Error() string { return "service: " + e.text }

// RetryAfter returns how long the service asks not to be called, or 0.
func (e *unavailable) RetryAfter() time.Duration { return e.retryAfter }

const queueFull = "queue is full"

// IsOverloaded reports whether err says that the queue of the service was full.
func IsOverloaded(err error) bool {
	e, ok := errors.AsType[*unavailable](err)
	return ok && e.text == queueFull
}

func newService(r *run) *service {
	s := &service{Service: &r.world.Service, run: r, inForce: make([]bool, len(r.world.Faults))}
	for n := range max(s.Hosts, 1) {
		s.hosts = append(s.hosts, new(host))
		s.setConditions(n)
	}
	for i := range r.world.Faults {
		r.push(event{at: r.world.Faults[i].From, kind: toggle, index: i})
	}
	return s
}

func (s *service) idle() bool { return s.pending == 0 }

// enter takes an attempt. The work on it begins at once if a server is free.
func (s *service) enter(a *attempt) {
	s.run.tally.sent(a)
	h := s.hosts[a.host]
	switch {
	case a.loss < h.lost:
		s.leave(a)
	case h.down:
		s.run.push(event{at: s.run.now() + h.failTime, kind: fail, attempt: a, index: a.version})
	case h.mayStart():
		s.start(h, a)
	case s.hasRoom(h):
		h.queue = append(h.queue, a)
	default:
		s.leave(a)
		a.deliverAnswer(&unavailable{queueFull, s.RetryAfter})
	}
}

func (h *host) mayStart() bool { return !h.hung && !h.down && len(h.working) < h.servers }

// hasRoom reports whether another attempt may wait.
func (s *service) hasRoom(h *host) bool {
	if len(h.queue) < s.Queue || !s.DropsAbandoned {
		return len(h.queue) < s.Queue
	}
	kept := h.queue[:0]
	for _, a := range h.queue {
		if a.over {
			s.leave(a)
			continue
		}
		kept = append(kept, a)
	}
	clear(h.queue[len(kept):])
	h.queue = kept
	return len(h.queue) < s.Queue
}

func (s *service) leave(a *attempt) {
	a.version++
	s.pending--
}

// start makes a server work on an attempt.
func (s *service) start(h *host, a *attempt) {
	a.works, a.fails = s.timeOf(h, a)
	a.index = len(h.working)
	h.working = append(h.working, a)
	s.schedule(a, a.works)
}

// timeOf returns how long a server works on an attempt that starts now, and whether it fails then.
func (s *service) timeOf(h *host, a *attempt) (works time.Duration, fails bool) {
	now := s.run.now()
	usual := float64(a.time) * s.coldness(a.host)
	for _, slower := range h.slower {
		if a.slow < slower.share {
			usual *= 1 + (slower.times-1)*slower.fault.growth(now)
		}
	}
	good := 1.0
	for _, e := range h.errors {
		good *= 1 - e.share*e.fault.growth(now)
		if 1-a.luck > good {
			if e.failTime > 0 {
				return e.failTime, true
			}
			return bounded(usual), true
		}
	}
	if k := a.call; k.leaves > 0 && !k.left {
		return endlessTime, false
	}
	return bounded(usual), false
}

// bounded converts a time that may be too long for a time.Duration.
func bounded(d float64) time.Duration { return time.Duration(min(d, float64(endlessTime))) }

// endlessTime is a duration longer than any simulation.
const endlessTime = 365 * 24 * time.Hour

func (s *service) schedule(a *attempt, after time.Duration) {
	a.ends = s.run.now() + after
	s.run.push(event{at: a.ends, kind: finish, attempt: a, index: a.version})
}

// finished answers an attempt and starts the next one.
func (s *service) finished(a *attempt) {
	h := s.hosts[a.host]
	s.stop(h, a, a.works)
	s.noteWarm(a.host)
	if a.fails {
		a.deliverAnswer(errFailed)
	} else {
		a.deliverAnswer(nil)
	}
	s.startWaiting(h)
}

// endStream ends the work on a stream whose client leaves, and reports whether it was being served.
func (s *service) endStream(a *attempt) bool {
	h := s.hosts[a.host]
	if a.fails || a.index >= len(h.working) || h.working[a.index] != a {
		return false
	}
	left := a.ends - s.run.now()
	if h.hung {
		left = a.left
	}
	s.stop(h, a, a.works-left)
	s.startWaiting(h)
	return !h.hung
}

// stop removes an attempt from its server, and records the time that the server has worked on it.
func (s *service) stop(h *host, a *attempt, worked time.Duration) {
	last := h.working[len(h.working)-1]
	h.working[a.index] = last
	last.index = a.index
	h.working[len(h.working)-1] = nil
	h.working = h.working[:len(h.working)-1]
	s.leave(a)
	s.run.tally.addWork(a, worked)
}

// failed answers an attempt that found its host down.
func (s *service) failed(a *attempt) {
	s.leave(a)
	err := a.failure
	if err == nil {
		h := s.hosts[a.host]
		retryAfter := s.RetryAfter
		if h.ends > 0 {
			retryAfter = max(h.ends-s.run.now(), 0)
		}
		err = &unavailable{"unavailable", retryAfter}
	}
	a.deliverAnswer(err)
}

// startWaiting starts waiting attempts while there are free servers.
func (s *service) startWaiting(h *host) {
	for len(h.queue) > 0 && h.mayStart() {
		a := h.queue[0]
		h.queue[0] = nil
		h.queue = h.queue[1:]
		if a.over && s.DropsAbandoned {
			s.leave(a)
			continue
		}
		s.start(h, a)
	}
}
