package breaker

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// FailedCall describes a failed call that a breaker keeps. It takes at most 1.5 kB: the texts are
// cut to the given lengths between two characters, and bytes that are not UTF-8 are replaced.
type FailedCall struct {
	// Time is when the call failed.
	Time time.Time
	// Duration is how long the call took, or 0 if it was not timed. All calls are timed if
	// Config.SlowCall is set.
	Duration time.Duration
	// Kind is the Go type of the error, such as "*net.OpError", in at most 100 bytes. Wrappers made
	// by packages fmt and errors do not count: if there is nothing else, Kind is "error". It is
	// "panic" if the call panicked or called runtime.Goexit, "result" if it returned no error but a
	// value that is a failure, and "recorded" if Permit.Record recorded it.
	Kind string
	// Message is the text of the error, in at most 200 bytes.
	Message string
	// Note is the text that Config.DescribeFailure returned, cut to 200 bytes.
	Note string
}

// String returns the failure in one line, such as
//
//	15:04:05.120 *net.OpError after 1.2s: "dial tcp: connection refused" (trace 4bf92f)
func (f FailedCall) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s %s", f.Time.Format("15:04:05.000"), f.Kind)
	if f.Duration >= time.Microsecond {
		fmt.Fprintf(&s, " after %v", f.Duration.Round(time.Microsecond))
	}
	if f.Message != "" {
		s.WriteString(": " + strconv.Quote(f.Message))
	}
	if f.Note != "" {
		quoted := strconv.Quote(f.Note)
		s.WriteString(" (" + quoted[1:len(quoted)-1] + ")")
	}
	return s.String()
}

// openingDetails describe one opening. They never change.
type openingDetails struct {
	margin   string
	failures []FailedCall
}

// newDetails returns the details of an opening now. The lock is held.
func (b *Breaker) newDetails(margin string) *openingDetails {
	if b.observed != nil {
		b = b.observed
	}
	d := &openingDetails{margin: margin}
	if r := b.failures.Load(); r != nil {
		d.failures = r.snapshot(b.date)
	}
	return d
}

// forgetFailures forgets all failures.
func (b *Breaker) forgetFailures() {
	if b.observed != nil {
		b = b.observed
	}
	b.failures.Store(nil)
}

// keepFailure stores a failure that was counted in phase p. f is nil if only the outcome is known.
func (b *Breaker) keepFailure(p *phase, m *Permit, at time.Duration, f *failure) {
	most := p.rules.config.KeepFailures
	r := b.failures.Load()
	if f == nil {
		f = &recordedFailure
	}
	if most == 0 || !r.keeps(at) {
		return
	}
	for r == nil {
		b.failures.CompareAndSwap(nil, &failureRing{})
		r = b.failures.Load()
	}
	took := time.Duration(0)
	if m.phase.timed || m.phase.results >= probeResults {
		took = max(at-m.start, 0)
	}
	r.add(most, at, took, f)
}

// failureSpacing is the minimum time after the last kept failure before a new one replaces an older
// one. In a burst most failures have the same text, and keeping a text takes longer than the rest
// of a call.
const failureSpacing = time.Millisecond

// failureRing holds the last failures.
type failureRing struct {
	full atomic.Bool
	last atomic.Int64 // the time of the last failure kept
	mu   sync.Mutex
	most int
	list []keptFailure
	next int // the index of the oldest failure if list is full, otherwise 0
}

// keptFailure is a failure whose texts are stored in one buffer, which is reused.
type keptFailure struct {
	at, took      time.Duration
	texts         []byte
	kind, message uint32 // lengths
}

// keeps reports whether a failure at a time is kept. A nil ring is empty.
func (r *failureRing) keeps(at time.Duration) bool {
	if r == nil || !r.full.Load() {
		return true
	}
	since := at - time.Duration(r.last.Load())
	return since >= failureSpacing || since < 0 // the clock was set back
}

func (r *failureRing) add(most int, at, took time.Duration, f *failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.most != most {
		r.resize(most)
	}
	r.last.Store(int64(at))
	defer func() { r.full.Store(len(r.list) == most) }()
	if len(r.list) < most {
		r.list = append(r.list, keptFailure{})
		r.list[len(r.list)-1].set(at, took, f)
		return
	}
	r.list[r.next].set(at, took, f)
	r.next = (r.next + 1) % most
}

func (k *keptFailure) set(at, took time.Duration, f *failure) {
	k.at, k.took, k.kind, k.message = at, took, uint32(len(f.kind)), uint32(len(f.message))
	t := slices.Grow(k.texts[:0], len(f.kind)+len(f.message)+len(f.note))
	k.texts = append(append(append(t, f.kind...), f.message...), f.note...)
}

// resize keeps as many of the last failures as fit.
func (r *failureRing) resize(most int) {
	list := slices.Concat(r.list[r.next:], r.list[:r.next])
	r.list, r.next, r.most = slices.Clone(list[max(len(list)-most, 0):]), 0, most
}

// snapshot returns the failures, the oldest first.
func (r *failureRing) snapshot(date func(time.Duration) time.Time) []FailedCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := make([]FailedCall, 0, len(r.list))
	for _, part := range [][]keptFailure{r.list[r.next:], r.list[:r.next]} {
		for _, k := range part {
			s := string(k.texts)
			calls = append(calls, FailedCall{
				Time: date(k.at), Duration: k.took,
				Kind: s[:k.kind], Message: s[k.kind : k.kind+k.message], Note: s[k.kind+k.message:],
			})
		}
	}
	return calls
}
