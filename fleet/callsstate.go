package fleet

import (
	"crypto/rand"
	"math"
	"time"
)

// ledger is the account of one node with its fleet: what it has counted, what of that
// it has told, and what it has been told. It is arithmetic on offsets from the node's
// epoch, with neither lock nor clock.
type nodeState struct {
	node        string
	width       time.Duration
	span        time.Duration
	interval    time.Duration
	giveUpAfter time.Duration // how long a flush may be in doubt

	captured   callCounts    // what the node has counted, up to
	capturedAt time.Duration // this moment
	pending    []delta       // what of that is in no flush yet, the oldest first

	inFlight []delta       // sent, and not known to have arrived; nil for none
	number   int64         // of the latest flush
	sent     time.Duration // when it was first sent

	latest     *serverReply  // nil for none
	registered bool          // whether Redis knows the node, as far as the node knows
	others     callCounts    // calls of the other nodes
	forgotten  time.Duration // what began before is not in the outlook

	late int64
	lost callCounts
}

// reading is what Redis told: the window as of one moment.
type serverReply struct {
	asked     time.Duration // when the node sent the flush that it answers
	server    time.Duration // the server's time, since 1970
	created   int64         // the key's; another one shows that Redis has forgotten the former
	nodeKnown bool          // whether the node was known before
	total     callCounts    // calls that were counted in time
	own       callCounts    // of those the node's
	late      int64         // calls of the node that were not
	buckets   []bucket
}

func newNodeState(c CallsConfig) nodeState {
	return nodeState{
		node: rand.Text(), width: c.width(), span: c.Span, interval: c.Interval, giveUpAfter: c.lifetime() / 2,
		forgotten: math.MinInt64,
	}
}

// capture takes up what the node has counted by now. It counts as of now; as of one
// interval after the last capture where the node has been held up since, for then it
// is not known how old it is. Figures that have been read before others that were
// taken up already add nothing.
func (l *nodeState) capture(now time.Duration, own callCounts) {
	d := delta{at: min(now, l.capturedAt+l.interval), callCounts: own.minus(l.captured)}
	d.from = d.at
	l.captured, l.capturedAt = l.captured.plus(d.callCounts), now
	if d.callCounts == (callCounts{}) {
		return
	}
	if last := len(l.pending) - 1; last >= 0 && d.at-l.pending[last].from <= l.width/10 {
		d.callCounts, d.from = d.plus(l.pending[last].callCounts), l.pending[last].from
		l.pending = l.pending[:last]
	}
	l.pending = append(l.pending, d)
	l.mergeExpired(now)
}

// fold makes one delta of those that are too old for the window, so that what waits is
// bounded however long Redis is unavailable.
func (l *nodeState) mergeExpired(now time.Duration) {
	for len(l.pending) > 1 && now-l.pending[1].at > l.span+l.width {
		l.pending[1].callCounts = l.pending[1].plus(l.pending[0].callCounts)
		l.pending = l.pending[1:]
	}
}

// next returns the flush to send: the one in doubt, with its number, or else a new one
// of what waits. It may be empty.
func (l *nodeState) nextFlush(now time.Duration) []delta {
	if l.inFlight != nil && now-l.sent > l.giveUpAfter {
		for _, d := range l.inFlight {
			l.lost = l.lost.plus(d.callCounts)
		}
		l.inFlight = nil
	}
	if l.inFlight == nil && len(l.pending) > 0 {
		l.inFlight, l.pending, l.sent = l.pending, nil, now
		l.number++
	}
	return l.inFlight
}

// settle takes the answer to the flush that next returned.
func (l *nodeState) receive(r *serverReply) {
	told := l.inFlight != nil
	l.inFlight = nil
	before, met := l.latest, l.registered
	l.latest, l.registered = r, told || r.nodeKnown
	if before == nil {
		l.late += r.late
		return // what the others counted before is history
	}
	same := r.created == before.created && (r.nodeKnown || !met)
	if !same {
		before = &serverReply{asked: before.asked}
	}
	l.late += max(r.late-before.late, 0)
	if same && r.asked-before.asked <= l.span {
		now, then := r.total.minus(r.own), before.total.minus(before.own)
		if now.atLeast(then) { // or else a failover has taken some back, and what came since cannot be told from the rest
			l.others = l.others.plus(now.minus(then))
		}
		return
	}
	// Nobody can say how much of the totals is news. What is in the window is.
	var recent callCounts
	for _, b := range r.buckets {
		recent = recent.plus(b.callCounts)
	}
	l.others = l.others.plus(recent.minus(r.own.minus(before.own)))
}

// forget leaves out of the outlook what any node has counted by now. It may be taken up an
// interval later.
func (l *nodeState) forget(now time.Duration) { l.forgotten = now + l.interval }

// serverTime is what the server's clock shows at the given moment, as far as is known. It
// is not if there is no reading; then any clock will do to divide time into buckets.
func (l *nodeState) serverTime(at time.Duration) time.Duration {
	if l.latest == nil {
		return at
	}
	return l.latest.server + at - l.latest.asked
}

// outlook is how the window will be from now on.
func (l *nodeState) snapshot(now time.Duration, sources []source) *snapshot {
	server := l.serverTime(now)
	o := &snapshot{
		sources: sources, captured: l.captured, others: l.others,
		width: l.width, start: now - server%l.width, remaining: make([]callCounts, l.span/l.width),
	}
	newest := int64(server / l.width)
	for b := range l.yieldKnown {
		b.number = min(b.number, newest)
		if began := o.start - time.Duration(newest-b.number)*l.width; began < l.forgotten {
			continue
		}
		if last := int64(len(o.remaining)) - 1 - (newest - b.number); last >= 0 {
			o.remaining[last] = o.remaining[last].plus(b.callCounts)
		}
	}
	for i := len(o.remaining) - 2; i >= 0; i-- {
		o.remaining[i] = o.remaining[i].plus(o.remaining[i+1])
	}
	return o
}

// known yields what is known of the window, in any order: what Redis told, and what the
// node has not told Redis, as far as that is known.
func (l *nodeState) yieldKnown(yield func(bucket) bool) {
	if l.latest != nil {
		for _, b := range l.latest.buckets {
			if !yield(b) {
				return
			}
		}
	}
	for _, ds := range [2][]delta{l.inFlight, l.pending} {
		for _, d := range ds {
			if !yield(bucket{int64(l.serverTime(d.at) / l.width), d.callCounts}) {
				return
			}
		}
	}
}
