package deny

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/limiter"
)

// ways is how many places a set has.
const slotsPerSet = 8

// Cache remembers refusals. It is made with New; all methods are safe for concurrent use, and none blocks. A nil Cache remembers
// nothing.
type Cache struct {
	epoch     time.Time
	longest   time.Duration // that a refusal is remembered
	seed      maphash.Seed
	allRounds atomic.Uint64 // how often everything was forgotten: a part of all rounds
	sets      []set
}

// set is the places for the keys of some hashes.
type set struct {
	// round changes whenever something was forgotten. A refusal counts in the round in which the server was asked: one that
	// comes in late, from before permits were given back, is worth nothing.
	round atomic.Uint64
	slots [slotsPerSet]atomic.Pointer[refusal]
}

// refusal is what was said about a key. It is never changed.
type refusal struct {
	hash  uint64
	key   string
	n     int
	round uint64

	until  time.Duration // the server says the same before that
	retry  time.Duration // when the same request may succeed, if until is not a moment late
	reset  time.Duration // when all permits are there again
	result limiter.Result
}

// New returns a cache for at least so many keys, of 200 bytes each and the key, which it copies; bound the length of keys before. Nothing is remembered for longer than most.
func New(keys int, most time.Duration) *Cache {
	return &Cache{epoch: time.Now(), longest: most, seed: maphash.MakeSeed(), sets: make([]set, (keys+slotsPerSet-1)/slotsPerSet)}
}

// Look is what a cache knows about a request.
type Lookup struct {
	Refused bool
	Result  limiter.Result // where Refused

	cache *Cache
	set   *set
	hash  uint64
	key   string
	n     int
	round uint64
	at    time.Duration
}

// Look looks for a refusal that holds for a request of n permits.
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

// find finds a refusal that holds.
func (l *Lookup) find() {
	for i := range l.set.slots {
		r := l.set.slots[i].Load()
		if r != nil && r.appliesTo(l) && l.n >= r.n {
			l.Refused, l.Result = true, r.resultFor(l)
			return
		}
	}
}

// Remember remembers that the request was refused after it had been looked for.
func (l *Lookup) Remember(answer limiter.Result) {
	if l.cache == nil || answer.OK || answer.RetryAfter <= 0 || answer.RetryAfter == limiter.Never {
		return
	}
	// The server has decided between the two times. From the first on it says no for as long as it said; from the second on
	// waiting for as long is enough.
	now := time.Since(l.cache.epoch)
	r := &refusal{
		hash: l.hash, key: strings.Clone(l.key), n: l.n, round: l.round, result: answer,
		until: addCapped(l.at, min(answer.RetryAfter, l.cache.longest)), retry: addCapped(now, answer.RetryAfter), reset: addCapped(now, answer.ResetAfter),
	}
	l.set.slotFor(r).Store(r)
}

// Forget forgets what was refused to a key. It is called after permits were given back to it, or its limit was changed.
func (c *Cache) Forget(key string) {
	if c == nil {
		return
	}
	c.sets[maphash.String(c.seed, key)%uint64(len(c.sets))].round.Add(1)
}

// ForgetAll forgets what was refused to all keys. It is called after permits were given back that many keys share.
func (c *Cache) ForgetAll() {
	if c != nil {
		c.allRounds.Add(1)
	}
}

// place finds a place for r: its key's, a free one, or that of the refusal that ends soonest or has ended. Two goroutines may choose the same; one
// refusal is lost then.
func (s *set) slotFor(r *refusal) *atomic.Pointer[refusal] {
	best, soonest := &s.slots[0], limiter.Never
	for i := range s.slots {
		p := s.slots[i].Load()
		switch {
		case p != nil && p.hash == r.hash && p.key == r.key:
			return &s.slots[i]
		case p == nil || p.round != r.round:
			best, soonest = &s.slots[i], -1
		case p.until < soonest:
			best, soonest = &s.slots[i], p.until
		}
	}
	return best
}

// holds reports whether r is about the key, and still true.
func (r *refusal) appliesTo(l *Lookup) bool {
	return r.hash == l.hash && r.round == l.round && l.at < r.until && r.key == l.key
}

// tell is the answer to a request that is refused for r.
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

// later is a time after another, without overflow.
func addCapped(at, d time.Duration) time.Duration {
	if at+d < at {
		return limiter.Never
	}
	return at + d
}
