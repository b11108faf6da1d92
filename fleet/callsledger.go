package fleet

import (
	"crypto/rand"
	"math"
	"time"
)

// ledger is the account of one node with its fleet: what it has counted, what of that
// it has told, and what it has been told. It is arithmetic on offsets from the node's
// epoch, with neither lock nor clock.
type ledger struct {
	node     string
	width    time.Duration
	span     time.Duration
	interval time.Duration
	doubt    time.Duration // how long a flush may be in doubt

	taken   row           // what the node has counted, up to
	at      time.Duration // this moment
	waiting []delta       // what of that is in no flush yet, the oldest first

	flush  []delta       // sent, and not known to have arrived; nil for none
	number int64         // of the latest flush
	sent   time.Duration // when it was first sent

	last      *reading      // nil for none
	met       bool          // whether Redis knows the node, as far as the node knows
	others    row           // calls of the other nodes
	forgotten time.Duration // what began before is not in the outlook

	late int64
	lost row
}

// reading is what Redis told: the window as of one moment.
type reading struct {
	asked   time.Duration // when the node sent the flush that it answers
	server  time.Duration // the server's time, since 1970
	life    int64         // the key's; another one shows that Redis has forgotten the former
	known   bool          // whether the node was known before
	total   row           // calls that were counted in time
	mine    row           // of those the node's
	late    int64         // calls of the node that were not
	buckets []bucket
}

func newLedger(c CallsConfig) ledger {
	return ledger{
		node: rand.Text(), width: c.width(), span: c.Span, interval: c.Interval, doubt: c.keep() / 2,
		forgotten: math.MinInt64,
	}
}

// capture takes up what the node has counted by now. It counts as of now; as of one
// interval after the last capture where the node has been held up since, for then it
// is not known how old it is. Figures that have been read before others that were
// taken up already add nothing.
func (l *ledger) capture(now time.Duration, own row) {
	d := delta{at: min(now, l.at+l.interval), row: own.less(l.taken)}
	d.from = d.at
	l.taken, l.at = l.taken.plus(d.row), now
	if d.row == (row{}) {
		return
	}
	if last := len(l.waiting) - 1; last >= 0 && d.at-l.waiting[last].from <= l.width/10 {
		d.row, d.from = d.plus(l.waiting[last].row), l.waiting[last].from
		l.waiting = l.waiting[:last]
	}
	l.waiting = append(l.waiting, d)
	l.fold(now)
}

// fold makes one delta of those that are too old for the window, so that what waits is
// bounded however long Redis is unavailable.
func (l *ledger) fold(now time.Duration) {
	for len(l.waiting) > 1 && now-l.waiting[1].at > l.span+l.width {
		l.waiting[1].row = l.waiting[1].plus(l.waiting[0].row)
		l.waiting = l.waiting[1:]
	}
}

// next returns the flush to send: the one in doubt, with its number, or else a new one
// of what waits. It may be empty.
func (l *ledger) next(now time.Duration) []delta {
	if l.flush != nil && now-l.sent > l.doubt {
		for _, d := range l.flush {
			l.lost = l.lost.plus(d.row)
		}
		l.flush = nil
	}
	if l.flush == nil && len(l.waiting) > 0 {
		l.flush, l.waiting, l.sent = l.waiting, nil, now
		l.number++
	}
	return l.flush
}

// settle takes the answer to the flush that next returned.
func (l *ledger) settle(r *reading) {
	told := l.flush != nil
	l.flush = nil
	before, met := l.last, l.met
	l.last, l.met = r, told || r.known
	if before == nil {
		l.late += r.late
		return // what the others counted before is history
	}
	same := r.life == before.life && (r.known || !met)
	if !same {
		before = &reading{asked: before.asked}
	}
	l.late += max(r.late-before.late, 0)
	if same && r.asked-before.asked <= l.span {
		now, then := r.total.less(r.mine), before.total.less(before.mine)
		if now.holds(then) { // or else a failover has taken some back, and what came since cannot be told from the rest
			l.others = l.others.plus(now.less(then))
		}
		return
	}
	// Nobody can say how much of the totals is news. What is in the window is.
	var recent row
	for _, b := range r.buckets {
		recent = recent.plus(b.row)
	}
	l.others = l.others.plus(recent.less(r.mine.less(before.mine)))
}

// forget leaves out of the outlook what any node has counted by now. It may be taken up an
// interval later.
func (l *ledger) forget(now time.Duration) { l.forgotten = now + l.interval }

// serverTime is what the server's clock shows at the given moment, as far as is known. It
// is not if there is no reading; then any clock will do to divide time into buckets.
func (l *ledger) serverTime(at time.Duration) time.Duration {
	if l.last == nil {
		return at
	}
	return l.last.server + at - l.last.asked
}

// outlook is how the window will be from now on.
func (l *ledger) outlook(now time.Duration, sources []source) *outlook {
	server := l.serverTime(now)
	o := &outlook{
		sources: sources, taken: l.taken, others: l.others,
		width: l.width, start: now - server%l.width, left: make([]row, l.span/l.width),
	}
	newest := int64(server / l.width)
	for b := range l.known {
		b.number = min(b.number, newest)
		if began := o.start - time.Duration(newest-b.number)*l.width; began < l.forgotten {
			continue
		}
		if last := int64(len(o.left)) - 1 - (newest - b.number); last >= 0 {
			o.left[last] = o.left[last].plus(b.row)
		}
	}
	for i := len(o.left) - 2; i >= 0; i-- {
		o.left[i] = o.left[i].plus(o.left[i+1])
	}
	return o
}

// known yields what is known of the window, in any order: what Redis told, and what the
// node has not told Redis, as far as that is known.
func (l *ledger) known(yield func(bucket) bool) {
	if l.last != nil {
		for _, b := range l.last.buckets {
			if !yield(b) {
				return
			}
		}
	}
	for _, ds := range [2][]delta{l.flush, l.waiting} {
		for _, d := range ds {
			if !yield(bucket{int64(l.serverTime(d.at) / l.width), d.row}) {
				return
			}
		}
	}
}
