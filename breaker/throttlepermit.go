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

// Record records the outcome of the call and reports whether it counted: false if the permit is
// used up. Any goroutine may call it.
func (m *ThrottlePermit) Record(o Outcome) bool {
	if !m.take() {
		return false
	}
	m.throttle.book(o)
	return true
}

// DoneAt is Done at the time t.
func (m *ThrottlePermit) RecordAt(t time.Time, o Outcome) bool {
	if !m.take() {
		return false
	}
	m.throttle.tally.Record(m.throttle.at(t), verdict(o), 0)
	return true
}

// Done records the outcome of a call that was made with ctx and has returned err, as
// [Throttle.Outcome] classifies it. Call Done before you cancel ctx yourself. Do not defer Done:
// see [Permit].
func (m *ThrottlePermit) Done(ctx context.Context, err error) bool {
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
