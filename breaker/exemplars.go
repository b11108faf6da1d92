package breaker

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

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
	if ctx == unknownContext {
		return
	}
	list := b.exemplars.Load()
	if list == nil {
		made := make(exemplars, len(instrument.BreakerCallDuration.Bounds)+1)
		b.exemplars.CompareAndSwap(nil, &made)
		list = b.exemplars.Load()
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
	trace, span := m.phase.rules.config.Trace(ctx)
	if trace == "" || max(len(trace), len(span)) > maxTraceID {
		return
	}
	e.call.Store(&stat.Exemplar{Value: took, Time: b.date(at), TraceID: trace, SpanID: span})
	e.due.Store(int64(at + afterExemplar))
}

// keptExemplars returns the exemplars, the shortest call first.
func (b *Breaker) keptExemplars() (list []stat.Exemplar) {
	all := b.exemplars.Load()
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
