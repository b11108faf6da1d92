package fleet

import (
	"crypto/rand"
	"math"
	"time"

	"github.com/weir-go/weir/window"
)

// nodeState is the state of one node: the calls it has counted, the calls it has sent, and the
// latest reply of Redis. It has neither lock nor clock: times are offsets from the node's epoch.
type nodeState struct {
	node     string
	width    time.Duration // of a bucket
	span     time.Duration
	interval time.Duration
	// A flush without a reply is given up after giveUpAfter.
	giveUpAfter time.Duration

	// captured holds the node's counts at capturedAt.
	captured   callCounts
	capturedAt time.Duration
	usedAt     time.Duration // of the latest capture that found calls; 0 if there was none
	// pending is the part of captured that was not sent yet, the oldest first.
	pending []delta

	// inFlight is the flush without a reply, if any. It was first sent at the time sent.
	inFlight []delta
	number   int64 // of the latest flush
	sent     time.Duration

	latest *serverReply // nil if there was none
	// registered reports that Redis has an entry for the node, as far as the node knows.
	registered bool
	// others holds the counts of the other nodes.
	others callCounts
	// Buckets that began before forgotten are excluded from snapshots.
	forgotten time.Duration

	// late counts calls of this node that arrived too late for the window.
	late int64
	// lost counts the calls in flushes that were given up.
	lost callCounts
}

// serverReply is the reply to a flush: the state of the window at one moment.
type serverReply struct {
	// asked is when the flush was sent.
	asked time.Duration
	// server is the server's time, since 1970, or 0 if it is not known.
	server time.Duration
	// created identifies the key. It changes if Redis has lost the key and made a new one.
	created int64
	// nodeKnown reports that Redis had an entry for the node before.
	nodeKnown bool
	// total counts the calls that arrived in time, and own counts those of the node among them.
	total, own callCounts
	// late counts calls of the node that arrived too late.
	late    int64
	buckets []bucket
}

func newNodeState(c CallsConfig) nodeState {
	return nodeState{
		node: rand.Text(), width: c.width(), span: c.Span, interval: c.Interval, giveUpAfter: c.lifetime() / 2,
		forgotten: math.MinInt64,
	}
}

// capture adds the calls that the node has counted since the last capture. They are dated by the
// current time. If the last capture is longer than one interval ago, the age of the calls is not
// known, and they are dated one interval after that capture. Counts older than those already
// captured add nothing.
func (s *nodeState) capture(now time.Duration, own callCounts) {
	d := delta{at: min(now, s.capturedAt+s.interval), callCounts: own.minus(s.captured)}
	d.from = d.at
	s.captured, s.capturedAt = s.captured.plus(d.callCounts), now
	if d.callCounts == (callCounts{}) {
		return
	}
	s.usedAt = max(now, 1)
	if last := len(s.pending) - 1; last >= 0 && d.at-s.pending[last].from <= s.width/10 {
		d.callCounts, d.from = d.plus(s.pending[last].callCounts), s.pending[last].from
		s.pending = s.pending[:last]
	}
	s.pending = append(s.pending, d)
	s.mergeExpired(now)
}

// mergeExpired merges deltas that are too old for the window, so that pending stays bounded however
// long Redis is unavailable.
func (s *nodeState) mergeExpired(now time.Duration) {
	for len(s.pending) > 1 && now-s.pending[1].at > s.span+s.width {
		s.pending[1].callCounts = s.pending[1].plus(s.pending[0].callCounts)
		s.pending = s.pending[1:]
	}
}

// nextFlush returns the flush to send: again the flush that has no reply, or else a new flush of
// the pending calls. It may be empty.
func (s *nodeState) nextFlush(now time.Duration) []delta {
	if s.inFlight != nil && now-s.sent > s.giveUpAfter {
		for _, d := range s.inFlight {
			s.lost = s.lost.plus(d.callCounts)
		}
		s.inFlight = nil
	}
	if s.inFlight == nil && len(s.pending) > 0 {
		s.inFlight, s.pending, s.sent = s.pending, nil, now
		s.number++
	}
	return s.inFlight
}

// receive processes the reply to the flush that nextFlush returned.
func (s *nodeState) receive(r *serverReply) {
	flushed := s.inFlight != nil
	s.inFlight = nil
	before, registered := s.latest, s.registered
	s.latest, s.registered = r, flushed || r.nodeKnown
	if before == nil {
		s.late += r.late
		return // calls of other nodes from before this node began do not count
	}
	sameKey := r.created == before.created && (r.nodeKnown || !registered)
	if !sameKey {
		before = &serverReply{asked: before.asked}
	}
	s.late += max(r.late-before.late, 0)
	if sameKey && (before.server == 0 || r.asked-before.asked <= s.span) {
		now, then := r.total.minus(r.own), before.total.minus(before.own)
		if now.isAtLeast(then) {
			// otherwise a failover has lost some, and new calls cannot be distinguished from old
			// ones
			s.others = s.others.plus(now.minus(then))
		}
		return
	}
	// It is unknown which part of the totals is new. The calls in the window count as new.
	var recent callCounts
	for _, b := range r.buckets {
		recent = recent.plus(b.callCounts)
	}
	s.others = s.others.plus(recent.minus(r.own.minus(before.own)))
}

// forget excludes from snapshots the calls that any node has counted by now. Because a node may
// capture them up to an interval later, buckets that begin until then are excluded.
func (s *nodeState) forget(now time.Duration) { s.forgotten = now + s.interval }

// restart goes on in another clock, in which it is now. All calls so far are dated before the
// window. It is not known how much of the server's time has passed.
func (s *nodeState) restart(now time.Duration) {
	s.capturedAt, s.usedAt, s.sent, s.forgotten = now, 0, now, math.MinInt64
	for _, deltas := range [2][]delta{s.inFlight, s.pending} {
		for i := range deltas {
			deltas[i].at = now - s.span - s.width
			deltas[i].from = deltas[i].at
		}
	}
	if s.latest != nil {
		r := *s.latest
		r.asked, r.server, r.buckets = now, 0, nil
		s.latest = &r
	}
}

// knowsServerTime reports whether there was a reply in the present clock.
func (s *nodeState) knowsServerTime() bool { return s.latest != nil && s.latest.server != 0 }

// serverTime estimates the time of the server's clock at the given moment. Without a reply it is
// not known; then any clock that is not negative will do to divide time into buckets.
func (s *nodeState) serverTime(at time.Duration) time.Duration {
	if !s.knowsServerTime() {
		return at + (1<<62)/s.width*s.width
	}
	return s.latest.server + at - s.latest.asked
}

// snapshot returns the state from which the window is computed from now on.
func (s *nodeState) snapshot(now time.Duration, sources []callSource) *snapshot {
	server := s.serverTime(now)
	snap := &snapshot{
		at: now, sources: sources, captured: s.captured, others: s.others,
		width: s.width, start: now - server%s.width, remaining: make([]callCounts, s.span/s.width),
	}
	newest := int64(server / s.width)
	for b := range s.knownBuckets {
		b.number = min(b.number, newest)
		if began := snap.start - time.Duration(newest-b.number)*s.width; began < s.forgotten {
			continue
		}
		if last := int64(len(snap.remaining)) - 1 - (newest - b.number); last >= 0 {
			snap.remaining[last] = snap.remaining[last].plus(b.callCounts)
		}
	}
	for i := len(snap.remaining) - 2; i >= 0; i-- {
		snap.remaining[i] = snap.remaining[i].plus(snap.remaining[i+1])
	}
	return snap
}

// knownBuckets yields the buckets of the latest reply, and the calls that the node has not sent or
// has no reply to, in any order.
func (s *nodeState) knownBuckets(yield func(bucket) bool) {
	if s.latest != nil {
		for _, b := range s.latest.buckets {
			if !yield(b) {
				return
			}
		}
	}
	for _, deltas := range [2][]delta{s.inFlight, s.pending} {
		for _, d := range deltas {
			if !yield(bucket{int64(s.serverTime(d.at) / s.width), d.callCounts}) {
				return
			}
		}
	}
}

// totaler counts its calls.
type totaler interface{ Totals() window.Totals }

// callSource counts calls of this node.
type callSource struct {
	totaler
	before callCounts // its counts when it was first followed
}

// snapshot is one node's view of the window at one moment. It also says how the counts expire if
// Redis does not answer again. It is immutable.
type snapshot struct {
	at       time.Duration // when it was made
	sources  []callSource
	captured callCounts    // the part of the sources' calls that is in remaining
	others   callCounts    // calls of the other nodes since this one began
	start    time.Duration // when the newest bucket began
	width    time.Duration // of a bucket
	// remaining[i]: the counts still in the window when i more buckets have begun
	remaining []callCounts
}

// windowAt returns the calls in the window at a time.
func (s *snapshot) windowAt(now time.Duration) (c callCounts) {
	if begun := int64(max(now-s.start, 0) / s.width); begun < int64(len(s.remaining)) {
		c = s.remaining[begun]
	}
	return c.plus(s.ownCalls().minus(s.captured))
}

// ownCalls returns the calls that this node has counted.
func (s *snapshot) ownCalls() (c callCounts) {
	for i := range s.sources {
		source := &s.sources[i]
		c = c.plus(callCountsOf(window.Counts(source.Totals())).minus(source.before))
	}
	return c
}

// callCounts is the additive part of a window.Counts, in the order of the script.
type callCounts [6]int64

func callCountsOf(c window.Counts) callCounts {
	return callCounts{c.Successes, c.Failures, c.Slow, c.SlowFailures, c.Ignored, c.Refused}
}

func (c callCounts) windowCounts() window.Counts {
	return window.Counts{Successes: c[0], Failures: c[1], Slow: c[2], SlowFailures: c[3], Ignored: c[4], Refused: c[5]}
}

// maxCount bounds sums, because a server can report any numbers again and again. Two such sums can
// be added.
const maxCount = 1 << 61

func (c callCounts) plus(d callCounts) callCounts {
	for i, n := range d {
		c[i] = min(c[i]+n, maxCount)
	}
	return c
}

// minus returns c − d, with 0 in place of negative values.
func (c callCounts) minus(d callCounts) callCounts {
	for i, n := range d {
		c[i] = max(c[i]-n, 0)
	}
	return c
}

// isAtLeast reports whether no value of c is less than that of d.
func (c callCounts) isAtLeast(d callCounts) bool { return d.minus(c) == callCounts{} }

// delta holds the calls that one node counted between two times.
type delta struct {
	from, at time.Duration
	callCounts
}

// bucket is a bucket of the window that all nodes share. Buckets are numbered from 1970 on.
type bucket struct {
	number int64
	callCounts
}
