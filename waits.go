package weir

import (
	"context"
	"sync"
	"time"
)

// wait is the wait of a call. It does not contain the permit, which would have to be on the heap.
type wait struct {
	last  time.Time // when it ends
	setup *setup    // with which the call waits

	// what the call has: before the wait, during the wait, and at the end of a successful wait
	tokens    tokens
	slot      slot
	hasToken  bool // of the limiter
	lacksSlot bool // no slot was there a moment ago
}

// waitTerms are the settings of a wait that Reconfigure may change. They are not fields of wait,
// because waits keeps pointers to them, and a wait need not be on the heap.
type waitTerms struct {
	began time.Time
	setup *setup // with which the call waits

	// Guarded by the lock of waits during the wait.
	end    time.Time // when the wait ends
	cancel context.CancelCauseFunc
	timer  *time.Timer // calls cancel at end; nil unless Reconfigure has shortened the wait
}

// waits are the calls that wait at a gate or at the gates of a group, so that Reconfigure reaches
// them.
type waits struct {
	mu  sync.Mutex
	all map[*waitTerms]struct{}
}

// add adds a wait. Reconfigure may already have replaced the setup of the wait, so add calls adopt.
func (all *waits) add(w *waitTerms, cancel context.CancelCauseFunc) (remove func()) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.all == nil {
		all.all = map[*waitTerms]struct{}{}
	}
	all.all[w] = struct{}{}
	w.cancel = cancel
	w.adopt()
	return func() { all.remove(w) }
}

func (all *waits) remove(w *waitTerms) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.all, w)
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

// adopt applies the present configs of the gates to all calls that wait.
func (all *waits) adopt() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for w := range all.all {
		w.adopt()
	}
}

// adopt makes the call wait again if its gate has another limiter or another bound now. If MaxWait
// is shorter now, adopt makes the call stop waiting in time.
func (w *waitTerms) adopt() {
	s := w.setup.Gate.setup.Load().currentSetup() // a key without room has another gate
	if (s.limiter == nil) != (w.setup.limiter == nil) || s.inFlight != w.setup.inFlight {
		w.cancel(errChanged)
	}
	end := w.began.Add(s.longestWait)
	if !end.Before(w.end) {
		return
	}
	w.end = end
	if w.timer != nil {
		w.timer.Stop()
	}
	cancel := w.cancel
	w.timer = time.AfterFunc(end.Sub(s.now()), func() { cancel(errChanged) })
}
