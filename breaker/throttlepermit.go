package breaker

import (
	"context"
	"sync/atomic"
	"time"
)

// ThrottlePermit lets one call pass a [Throttle], and takes its result. Do not copy
// it after its first use. One that is forgotten harms nobody: the throttle misses a
// call. The zero ThrottlePermit is used up.
type ThrottlePermit struct {
	throttle *Throttle
	done     atomic.Bool
}

// Done books the result of the call. It counts once: it returns whether it did, and
// false for a permit that was used before. Any goroutine may call it.
func (m *ThrottlePermit) Done(o Outcome) bool {
	if !m.take() {
		return false
	}
	m.throttle.book(o)
	return true
}

// DoneAt is Done at the time t.
func (m *ThrottlePermit) DoneAt(t time.Time, o Outcome) bool {
	if !m.take() {
		return false
	}
	m.throttle.tally.Record(m.throttle.at(t), verdict(o), 0)
	return true
}

// Report is Done with the verdict on a call that was made with ctx and returned err:
// see [Throttle.Outcome]. Report before you cancel ctx yourself. For a call that may panic, defer Done(Failure) before it.
func (m *ThrottlePermit) Report(ctx context.Context, err error) bool {
	if !m.take() {
		return false
	}
	outcome := Ignored // until Classify has spoken: it may panic
	defer func() { m.throttle.book(outcome) }()
	outcome = m.throttle.Outcome(ctx, err)
	return true
}

// take uses the permit up, and reports whether it was there to use.
func (m *ThrottlePermit) take() bool {
	return m.throttle != nil && m.done.CompareAndSwap(false, true)
}
