package breaker

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
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
	// value that is a failure, and "recorded" if Permit.Record recorded it without an error.
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
	if b.shadowOf != nil {
		b = b.shadowOf
	}
	d := &openingDetails{margin: margin}
	if r := b.failures.Load(); r != nil {
		d.failures = r.snapshot(b.date)
	}
	return d
}

// forgetFailures forgets all failures.
func (b *Breaker) forgetFailures() {
	if b.shadowOf != nil {
		b = b.shadowOf
	}
	b.failures.Store(nil)
}

// keepFailure stores a failure that was counted in phase p.
func (b *Breaker) keepFailure(p *regime, m *Permit, at time.Duration, f *failure) {
	most := p.rules.config.KeepFailures
	r := b.failures.Load()
	if most == 0 || !r.keeps(at) {
		return
	}
	for r == nil {
		b.failures.CompareAndSwap(nil, &failureRing{})
		r = b.failures.Load()
	}
	took := time.Duration(0)
	if m.issuer.timed || m.issuer.results >= probeResults {
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

// The most bytes of the texts of a FailedCall.
const (
	maxKind = 100
	maxText = 200
)

// The kinds of failures without an error, and of errors without a type of their own.
const (
	kindPanic    = "panic"
	kindResult   = "result"
	kindRecorded = "recorded"
	kindError    = "error"
)

// failure holds the texts of a FailedCall. Its strings are cut to their greatest length, but may
// still be parts of longer strings in memory.
type failure struct{ kind, message, note string }

// isKept reports whether describe was called for f.
func (f *failure) isKept() bool { return f != nil && f.kind != "" }

// describe fills in f for a failed call that returned err. If err is nil, the failure is of the
// given kind. It calls functions of the user, so no lock is held.
func (f *failure) describe(ctx context.Context, err error, kind string, c *Config) {
	if c.KeepFailures == 0 {
		return
	}
	if f.kind = kind; err != nil {
		f.readError(err)
	}
	if c.DescribeFailure != nil {
		f.applyUserChange(ctx, err, c.DescribeFailure)
	}
}

// readError takes the kind and the message of an error, whose methods may panic.
func (f *failure) readError(err error) {
	f.kind = kindError
	defer func() {
		if recover() != nil {
			f.message = "the error panicked"
		}
	}()
	f.kind = truncateText(kindOf(err), maxKind)
	f.message = truncateText(err.Error(), maxText)
}

// isWrapper reports whether errors of the type are made by packages fmt and errors.
func isWrapper(t reflect.Type) bool {
	if t.Kind() != reflect.Pointer {
		return false
	}
	from := t.Elem().PkgPath()
	return from == "fmt" || from == "errors"
}

// kindOf returns the type of the first error in the tree of err that is no wrapper, or
// kindError if there is none.
func kindOf(err error) string {
	for err != nil {
		t := reflect.TypeOf(err)
		if !isWrapper(t) {
			return t.String()
		}
		switch e := err.(type) { //nolint:errorlint // this is what unwraps
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			all := e.Unwrap()
			if len(all) == 0 { // as of fmt.Errorf("%w %w", nil, nil)
				return kindError
			}
			err = all[0]
		default:
			return kindError
		}
	}
	return kindError
}

// applyUserChange calls a function of the user that may change f. If it panics, f is left without
// texts.
func (f *failure) applyUserChange(ctx context.Context, err error, describe func(context.Context, error, *FailedCall)) {
	kind := f.kind
	call := FailedCall{Kind: kind, Message: strings.Clone(f.message)}
	*f = failure{kind: kind}
	defer func() { _ = recover() }() // the panic would reach a caller that did not cause it
	describe(ctx, err, &call)
	*f = failure{truncateText(call.Kind, maxKind), truncateText(call.Message, maxText), truncateText(call.Note, maxText)}
}

// truncateText returns at most the first n bytes of s, without splitting a character, as UTF-8.
func truncateText(s string, n int) string {
	s = firstBytes(s, n)
	if utf8.ValidString(s) {
		return s
	}
	return firstBytes(strings.ToValidUTF8(s, "\uFFFD"), n)
}

// firstBytes returns at most the first n bytes of s, without splitting a character.
func firstBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for back := 0; back < utf8.UTFMax && n > 0 && !utf8.RuneStart(s[n]); back++ {
		n--
	}
	return s[:n]
}

// exemplars are some of the calls that were traced: for each bucket of the instrument, the last
// such call whose duration is in it.
type exemplars []exemplar

type exemplar struct {
	due  atomic.Int64 // when the next call of the bucket is searched for a trace; 0 means at once
	call atomic.Pointer[stat.Exemplar]
}

// Times between two calls of a bucket whose contexts are searched for a trace. A search takes time,
// and most calls may have no trace that is sampled.
const (
	afterExemplar = time.Second
	afterOther    = 10 * time.Millisecond
)

// maxTraceID is the longest ID that is kept, in bytes. OpenTelemetry's have 32 hexadecimal digits.
const maxTraceID = 64

// keepExemplar keeps a call whose duration was counted, if its trace is known and an exemplar is
// due. It calls a function of the user, so no lock is held.
func (b *Breaker) keepExemplar(ctx context.Context, m *Permit, at time.Duration) {
	kept := &b.rareParts().exemplars
	list := kept.Load()
	if list == nil {
		made := make(exemplars, len(instrument.BreakerCallDuration.Bounds)+1)
		kept.CompareAndSwap(nil, &made)
		list = kept.Load()
	}
	took := max(at-m.start, 0).Seconds()
	i, _ := slices.BinarySearch(instrument.BreakerCallDuration.Bounds, took)
	e := &(*list)[i]
	due := e.due.Load()
	early := time.Duration(due) - at
	if due != 0 && early > 0 && early <= afterExemplar || !e.due.CompareAndSwap(due, int64(at+afterOther)) {
		return
	}
	defer func() { _ = recover() }() // the panic would reach a caller that did not cause it
	trace, span := m.issuer.rules.config.Trace(ctx)
	if trace == "" || max(len(trace), len(span)) > maxTraceID {
		return
	}
	e.call.Store(&stat.Exemplar{Value: took, Time: b.date(at), TraceID: trace, SpanID: span})
	e.due.Store(int64(at + afterExemplar))
}

// keptExemplars returns the exemplars, the shortest call first.
func (b *Breaker) keptExemplars() (list []stat.Exemplar) {
	all := b.rareSoFar().exemplars.Load()
	if all == nil {
		return nil
	}
	for i := range *all {
		if e := (*all)[i].call.Load(); e != nil {
			list = append(list, *e)
		}
	}
	return list
}
