package deny

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/limiter"
)

const slotsPerSet = 8

// Cache remembers refusals. All methods are safe for concurrent use, and none blocks. A nil Cache
// remembers nothing. The zero value does not work: use [New].
type Cache struct {
	epoch     time.Time
	longest   time.Duration // the longest time for which a refusal is remembered
	seed      maphash.Seed
	allRounds atomic.Uint64 // the part of every round that ForgetAll advances
	sets      []set
}

// set holds the refusals of keys with the same hash, modulo the number of sets.
type set struct {
	// round changes whenever refusals are forgotten. A refusal counts only in the round in which
	// the server was asked, because a refusal that arrives late may be older than a refund.
	round atomic.Uint64
	slots [slotsPerSet]atomic.Pointer[refusal]
}

// refusal is the server's latest refusal of a key. It is immutable.
type refusal struct {
	hash  uint64
	key   string
	n     int
	round uint64

	from   time.Duration // when the server was asked; before this, the clock is another one
	until  time.Duration // before this, the server would refuse again
	retry  time.Duration // from this on, the same request may succeed; not before until
	reset  time.Duration // when all tokens have returned
	result limiter.Result
}

// New returns a cache for at least the given number of keys. Each key takes 200 bytes plus its
// length. It copies keys but does not bound their length. Refusals are remembered for no longer
// than longest.
func New(keys int, longest time.Duration) *Cache {
	return &Cache{epoch: time.Now(), longest: longest, seed: maphash.MakeSeed(), sets: make([]set, (keys+slotsPerSet-1)/slotsPerSet)}
}

// Lookup is the answer of a cache to a request.
type Lookup struct {
	Refused bool
	Result  limiter.Result // if Refused

	cache *Cache
	set   *set
	hash  uint64
	key   string
	n     int
	round uint64
	at    time.Duration
}

// Lookup looks for a refusal that applies to a request for n tokens.
func (c *Cache) Lookup(key string, n int) Lookup {
	if c == nil || n < 1 {
		return Lookup{}
	}
	hash := maphash.String(c.seed, key)
	s := &c.sets[hash%uint64(len(c.sets))]
	l := Lookup{cache: c, set: s, hash: hash, key: key, n: n, round: s.round.Load() + c.allRounds.Load(), at: time.Since(c.epoch)}
	l.find()
	return l
}

func (l *Lookup) find() {
	for i := range l.set.slots {
		r := l.set.slots[i].Load()
		if r != nil && r.appliesTo(l) && l.n >= r.n {
			l.Refused, l.Result = true, r.resultFor(l)
			return
		}
	}
}

// Remember remembers that the server refused the request after the lookup.
func (l *Lookup) Remember(answer limiter.Result) {
	if l.cache == nil || answer.OK || answer.RetryAfter <= 0 || answer.RetryAfter == limiter.Never {
		return
	}
	// The server has decided between the lookup and now. It therefore refuses at least until
	// RetryAfter has passed since the lookup, and allows the request at the latest when RetryAfter
	// has passed from now.
	now := time.Since(l.cache.epoch)
	r := &refusal{
		hash: l.hash, key: strings.Clone(l.key), n: l.n, round: l.round, result: answer, from: l.at,
		until: addCapped(l.at, min(answer.RetryAfter, l.cache.longest)),
		retry: addCapped(now, answer.RetryAfter), reset: addCapped(now, answer.ResetAfter),
	}
	l.set.slotFor(r).Store(r)
}

// Forget forgets refusals of a key. Call it after tokens were given back or the limit was changed.
func (c *Cache) Forget(key string) {
	if c == nil {
		return
	}
	c.sets[maphash.String(c.seed, key)%uint64(len(c.sets))].round.Add(1)
}

// ForgetAll forgets all refusals. Call it after tokens were given back that many keys share.
func (c *Cache) ForgetAll() {
	if c != nil {
		c.allRounds.Add(1)
	}
}

// slotFor returns the slot for r: that of its key, a free one, or that of the refusal that has
// ended or ends first. Two goroutines may choose the same slot; then one refusal is lost.
func (s *set) slotFor(r *refusal) *atomic.Pointer[refusal] {
	best, soonest := &s.slots[0], limiter.Never
	for i := range s.slots {
		old := s.slots[i].Load()
		switch {
		case old != nil && old.hash == r.hash && old.key == r.key:
			return &s.slots[i]
		case old == nil || old.round != r.round:
			best, soonest = &s.slots[i], -1
		case old.until < soonest:
			best, soonest = &s.slots[i], old.until
		}
	}
	return best
}

// appliesTo reports whether r is about the key of l, and still true.
func (r *refusal) appliesTo(l *Lookup) bool {
	return r.hash == l.hash && r.round == l.round && l.at >= r.from && l.at < r.until && r.key == l.key
}

// resultFor returns the result for a request that r refuses.
func (r *refusal) resultFor(l *Lookup) limiter.Result {
	answer := r.result
	answer.ResetAfter = max(r.reset-l.at, 0)
	switch {
	case l.n > answer.Limit:
		answer.RetryAfter = limiter.Never
	case l.n > r.n:
		answer.RetryAfter = max(r.reset, r.retry) - l.at
	default:
		answer.RetryAfter = r.retry - l.at
	}
	return answer
}

// addCapped returns at + d, or limiter.Never if that overflows.
func addCapped(at, d time.Duration) time.Duration {
	if at+d < at {
		return limiter.Never
	}
	return at + d
}
