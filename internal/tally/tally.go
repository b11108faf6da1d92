// Package tally counts calls in a moving window. It is what window.Calls and the
// breakers count with; time comes as an offset from the owner's epoch.
package tally

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/ring"
)

// Counts has the fields of window.Counts, into which it converts.
type Counts struct {
	Successes           int64
	Failures            int64
	Slow                int64
	SlowFailures        int64
	Ignored             int64
	Refused             int64
	ConsecutiveFailures int64
}

// Verdict is what became of a call.
type Verdict uint8

// Verdicts, numbered as the outcomes of package window are.
const (
	Success Verdict = iota
	Failure
	Ignored
)

// Each word counts a pair of things, one in its low half and one in its high
// half. Words only grow and are never reset: one atomic add counts a call, one
// load reads a pair that was true at one instant (see Calls.word for one that is
// spread). A carry from the low half into the high one does no harm, because only
// differences are read.
const (
	judged = iota // calls with a verdict; failures among them
	slowed        // slow calls; failures among them
	others        // ignored; refused
	words
)

const (
	low  = uint64(1)
	high = uint64(1) << 32
	both = low | high
)

// longest bounds how long a word may grow before the difference is moved into
// 64-bit totals. One word takes some 30 million adds a second, and all cells of one that is
// spread take less than 2 billion, so that neither half of a difference comes to 2³².
const longest = int64(time.Second)

// Pair is what one word counts, in full width.
type Pair struct{ Low, High int64 }

// max returns the later of two readings of one word.
func (p Pair) max(q Pair) Pair { return Pair{max(p.Low, q.Low), max(p.High, q.High)} }

// minus returns what was counted between two readings of one word.
func (p Pair) minus(began Pair) Pair { return Pair{max(p.Low-began.Low, 0), max(p.High-began.High, 0)} }

// frame is what the words had come to at some moment, and the totals then.
type frame [words]struct {
	word      atomic.Uint64
	low, high atomic.Int64
}

// Calls counts calls. All methods may be called from any number of goroutines.
//
// Recording is one comparison and one atomic add, and another one where calls are timed;
// the first call of each bucket, and of each second, takes the lock and rolls. Where it is found that many record at
// once, successes go into cells of their own (see spread and Share). Readers write nothing and take no lock: they read the frame and the ring between two
// looks at their numbers, and read again if one of them changed meanwhile.
type Calls struct {
	slow    atomic.Int64  // slower than this is slow
	last    *last         // not nil: the window is over calls, and none of the rest is used but streak
	buckets int64         // in the window, the current one included
	due     atomic.Int64  // the offset from which a call must roll first, as the very first must
	head    atomic.Uint64 // frames[head&1] is the one in force
	ring    *ring.Ring
	mu      sync.Mutex              // held to roll
	timed   bool                    // times are counted
	shared  bool                    // successes may be spread,
	always  bool                    // be it quiet or not
	times   atomic.Pointer[latency] // made by the first roll, if timed: it takes some forty kilobytes
	hushed  atomic.Uint32           // what bad was when the window held nothing bad
	frames  [2]frame
	spread  atomic.Pointer[spread] // a part of the judged successes, once callers were found to crowd
	_       [56]byte               // what every call reads stays off the line that every call writes
	words   [words]atomic.Uint64
	streak  atomic.Int64
	_       [32]byte
}

// New returns an empty tally of so many buckets of the given width. Calls that
// take longer than slow count as slow.
func New(width time.Duration, buckets int, slow time.Duration) *Calls {
	c := &Calls{buckets: int64(buckets), ring: ring.New(int64(width), buckets, 2*words)}
	c.due.Store(math.MinInt64)
	c.SetSlow(slow)
	return c
}

// NewLast returns an empty tally of so many calls.
func NewLast(calls int, slow time.Duration) *Calls {
	c := &Calls{last: newLast(calls), ring: ring.New(1, 1, 1)}
	c.SetSlow(slow)
	return c
}

// SetSlow changes the time above which calls count as slow from now on.
func (c *Calls) SetSlow(slow time.Duration) { c.slow.Store(int64(slow)) }

// Untimed is how long a call took of which that is not known: no time is counted then.
const Untimed = time.Duration(math.MinInt64)

// Record counts a call that ended at the offset and took so long. It returns how many
// failures in a row that makes, 0 for what is none, and whether it is quiet: whether
// neither this call nor any since Hush found none in the window failed or was slow. Then
// there is none now.
func (c *Calls) Record(at time.Duration, v Verdict, took time.Duration) (streak int64, quiet bool) {
	if c.last != nil {
		c.last.record(v, int64(took) > c.slow.Load())
		return c.follow(v), false
	}
	if int64(at) >= c.due.Load() {
		c.roll(int64(at))
	}
	if v > Failure {
		c.words[others].Add(low)
		return 0, false
	}
	if l := c.times.Load(); l != nil && took != Untimed {
		l.Record(took)
	}
	var calls uint64
	if v == Success {
		if s := c.spread.Load(); s != nil && int64(took) <= c.slow.Load() && (c.always || c.calm()) {
			// Calm once more after the add: of a success and a failure at the same time, whoever
			// comes last sees the other, and judges both.
			s.add()
			return c.follow(v), c.calm()
		}
		if calls = c.words[judged].Add(low); calls%seldom == 0 {
			c.look()
		}
	} else {
		calls = c.words[judged].Add(both)
	}
	streak = c.follow(v)
	quiet = bad(calls, c.words[slowed].Load()) == c.hushed.Load()
	// After the call itself, and read before it: a reader that knows a slow call
	// knows the call.
	if int64(took) > c.slow.Load() {
		if v == Failure {
			c.words[slowed].Add(both)
		} else {
			c.words[slowed].Add(low)
		}
		quiet = false
	}
	return streak, quiet
}

// calm reports whether nothing bad was counted since Hush found nothing bad.
func (c *Calls) calm() bool {
	return bad(c.words[judged].Load(), c.words[slowed].Load()) == c.hushed.Load()
}

// Share lets successes be spread where many are recorded at once, which makes recording
// cheaper then, and reading dearer. Those who look at the window after each call that is not
// quiet share only the others; those who do not share always. It must be called before the
// first call is recorded.
func (c *Calls) Share(always bool) { c.shared, c.always = true, always }

// Spread spreads successes from now on, if they may be, and reports whether they may.
func (c *Calls) Spread() bool {
	if c.shared {
		c.spread.CompareAndSwap(nil, new(spread))
	}
	return c.shared
}

// look spreads the successes if their word is crowded.
func (c *Calls) look() {
	if c.spread.Load() == nil && crowded(c.words[judged].Load) {
		c.Spread()
	}
}

// word returns what a word has come to, with what is spread of it. The word itself is read
// first, so that no failure is seen without the successes before it. As calls grow by one at a
// time, there was a moment meanwhile with just so many of them, and no fewer failures among
// them than are seen: a rate that is found too high was so then.
func (c *Calls) word(w int) uint64 {
	n := c.words[w].Load()
	if w == judged {
		n += c.spread.Load().sum()
	}
	return n
}

// follow keeps the streak of failures, and returns what a failure has made it.
func (c *Calls) follow(v Verdict) int64 {
	switch {
	case v == Failure:
		return c.streak.Add(1)
	case v == Success && c.streak.Load() != 0:
		c.streak.Store(0)
	}
	return 0
}

// Refuse counts a call that was not let through.
func (c *Calls) Refuse(at time.Duration) {
	if c.last != nil {
		c.last.refuse()
		return
	}
	if int64(at) >= c.due.Load() {
		c.roll(int64(at))
	}
	c.words[others].Add(high)
}

// Totals returns what was counted in all.
func (c *Calls) Totals() Counts {
	return c.counts(c.total(slowed), c.total(judged), c.total(others))
}

// Window returns what was counted in the window as seen from the offset, and not
// before the totals that floor gives: the later beginning counts.
func (c *Calls) Window(at time.Duration, floor Counts) Counts {
	f := [words]Pair{
		judged: floor.Judged(),
		slowed: floor.Slowed(),
		others: {floor.Ignored, floor.Refused},
	}
	return c.counts(c.since(slowed, at, f[slowed]), c.since(judged, at, f[judged]), c.since(others, at, f[others]))
}

// Newest returns the offset at which the newest bucket began. No call has been counted
// into a later one.
func (c *Calls) Newest() time.Duration { return time.Duration(c.ring.Start(c.ring.Newest())) }

// Judged returns the calls with a verdict that Window would return and the
// failures among them: what a breaker asks for at each call.
func (c *Calls) Judged(at time.Duration, floor Pair) Pair { return c.since(judged, at, floor) }

// Verdicts returns what Judged does and, where any call has ever been slow, the slow calls
// that Window would return and the failures among them. They are read first: no slow call is
// seen without the calls before it.
func (c *Calls) Verdicts(at time.Duration, calls, slow Pair) (judge, slows Pair) {
	if c.last != nil || c.words[slowed].Load() != 0 {
		slows = c.since(slowed, at, slow)
	}
	return c.Judged(at, calls), slows
}

// Streak returns the number of failures since the last success.
func (c *Calls) Streak() int64 { return c.streak.Load() }

// SetStreak sets what Streak returns, for a tally that goes on from another.
func (c *Calls) SetStreak(n int64) { c.streak.Store(n) }

// Hush is Verdicts that makes Record say that it is quiet if there are neither failures nor
// slow calls in the window.
func (c *Calls) Hush(at time.Duration, calls, slow Pair) (judge, slows Pair) {
	bad := bad(c.words[judged].Load(), c.words[slowed].Load())
	judge, slows = c.Verdicts(at, calls, slow)
	if judge.High == 0 && slows.Low == 0 {
		c.hushed.Store(bad) // read first: what came meanwhile is not quiet
	}
	return judge, slows
}

// bad changes with every failure and every slow call. It comes round after 2³² of
// them; each of those was judged by itself.
func bad(calls, slow uint64) uint32 { return uint32(calls>>32) + uint32(slow) }

// Plus returns the sum of two totals.
func (n Counts) Plus(m Counts) Counts {
	n.Successes += m.Successes
	n.Failures += m.Failures
	n.Slow += m.Slow
	n.SlowFailures += m.SlowFailures
	n.Ignored += m.Ignored
	n.Refused += m.Refused
	n.ConsecutiveFailures += m.ConsecutiveFailures
	return n
}

// Judged returns the calls with a verdict and the failures among them.
func (n Counts) Judged() Pair { return Pair{n.Successes + n.Failures, n.Failures} }

// Slowed returns the slow calls and the failures among them.
func (n Counts) Slowed() Pair { return Pair{n.Slow, n.SlowFailures} }

// counts puts the readings of the three words together. They were read one after
// another, the slow calls first, so a slow mark may stand there without its call
// only where the beginning of the window parts the two: clamp.
func (c *Calls) counts(slow, calls, other Pair) Counts {
	slow.Low = min(slow.Low, calls.Low)
	return Counts{
		Successes:           calls.Low - calls.High,
		Failures:            calls.High,
		Slow:                slow.Low,
		SlowFailures:        min(slow.High, slow.Low, calls.High),
		Ignored:             other.Low,
		Refused:             other.High,
		ConsecutiveFailures: c.streak.Load(),
	}
}

func (c *Calls) total(w int) Pair {
	if c.last != nil {
		return c.last.total(w)
	}
	for {
		head := c.head.Load()
		p := c.frames[head&1].plus(w, c.word(w))
		if c.head.Load() == head {
			return p
		}
	}
}

// since returns what a word has counted in the window as seen from the offset,
// and not before the floor.
func (c *Calls) since(w int, at time.Duration, floor Pair) Pair {
	if c.last != nil {
		return c.last.since(w, floor)
	}
	for {
		head, newest := c.head.Load(), c.ring.Newest()
		first, began := c.first(int64(at), newest), floor
		if first <= newest {
			row := c.ring.Row(first)
			began = floor.max(Pair{row[2*w].Load(), row[2*w+1].Load()})
		}
		now := c.frames[head&1].plus(w, c.word(w))
		if c.head.Load() != head || c.ring.Newest() != newest {
			continue
		}
		if first > newest { // all buckets of the window began with what is there now
			return Pair{}
		}
		return now.minus(began)
	}
}

// first returns the number of the oldest bucket of the window as seen from the
// offset. An offset before the newest bucket sees what the newest sees.
func (c *Calls) first(at, newest int64) int64 {
	if at < c.due.Load() { // the usual case, without the division
		return newest - c.buckets + 1
	}
	return max(c.ring.Bucket(at), newest) - c.buckets + 1
}

// roll begins the bucket of the offset, unless that has been done meanwhile.
func (c *Calls) roll(at int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at < c.due.Load() {
		return
	}
	head := c.head.Load()
	var totals [2 * words]int64
	for w := words - 1; w >= 0; w-- { // slow before judged: see Record
		now := c.word(w)
		p := c.frames[head&1].plus(w, now)
		next := &c.frames[(head+1)&1][w]
		next.word.Store(now)
		next.low.Store(p.Low)
		next.high.Store(p.High)
		totals[2*w], totals[2*w+1] = p.Low, p.High
	}
	b := max(c.ring.Bucket(at), c.ring.Newest())
	c.ring.Advance(b, totals[:])
	c.head.Store(head + 1)
	due := c.ring.End(b)
	if soon := at + longest; soon > at {
		due = min(due, soon)
	}
	if c.timed {
		due = min(due, c.rollTimes(at))
	}
	c.due.Store(due) // last: whoever sees it finds the bucket begun
}

// plus returns the totals of a word that has come to now.
func (f *frame) plus(w int, now uint64) Pair {
	d := now - f[w].word.Load()
	return Pair{f[w].low.Load() + int64(uint32(d)), f[w].high.Load() + int64(d>>32)}
}
