package deny

import (
	"hash/maphash"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/limiter"
)

// ways is how many places a set has.
const ways = 8

// Cache remembers refusals. It is made with New; all methods are safe for concurrent use, and none blocks. A nil Cache remembers
// nothing.
type Cache struct {
	epoch time.Time
	most  time.Duration // that a refusal is remembered
	seed  maphash.Seed
	all   atomic.Uint64 // how often everything was forgotten: a part of all rounds
	sets  []set
}

// set is the places for the keys of some hashes.
type set struct {
	// round changes whenever something was forgotten. A refusal counts in the round in which the server was asked: one that
	// comes in late, from before permits were given back, is worth nothing.
	round  atomic.Uint64
	places [ways]atomic.Pointer[refusal]
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
	return &Cache{epoch: time.Now(), most: most, seed: maphash.MakeSeed(), sets: make([]set, (keys+ways-1)/ways)}
}

// Look is what a cache knows about a request.
type Look struct {
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
func (c *Cache) Look(key string, n int) Look {
	if c == nil || n < 1 {
		return Look{}
	}
	hash := maphash.String(c.seed, key)
	s := &c.sets[hash%uint64(len(c.sets))]
	l := Look{cache: c, set: s, hash: hash, key: key, n: n, round: s.round.Load() + c.all.Load(), at: time.Since(c.epoch)}
	l.find()
	return l
}

// find finds a refusal that holds.
func (l *Look) find() {
	for i := range l.set.places {
		r := l.set.places[i].Load()
		if r != nil && r.holds(l) && l.n >= r.n {
			l.Refused, l.Result = true, r.tell(l)
			return
		}
	}
}

// Remember remembers that the request was refused after it had been looked for.
func (l *Look) Remember(answer limiter.Result) {
	if l.cache == nil || answer.OK || answer.RetryAfter <= 0 || answer.RetryAfter == limiter.Never {
		return
	}
	// The server has decided between the two times. From the first on it says no for as long as it said; from the second on
	// waiting for as long is enough.
	now := time.Since(l.cache.epoch)
	r := &refusal{
		hash: l.hash, key: strings.Clone(l.key), n: l.n, round: l.round, result: answer,
		until: later(l.at, min(answer.RetryAfter, l.cache.most)), retry: later(now, answer.RetryAfter), reset: later(now, answer.ResetAfter),
	}
	l.set.place(r).Store(r)
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
		c.all.Add(1)
	}
}

// place finds a place for r: its key's, a free one, or that of the refusal that ends soonest or has ended. Two goroutines may choose the same; one
// refusal is lost then.
func (s *set) place(r *refusal) *atomic.Pointer[refusal] {
	best, soonest := &s.places[0], limiter.Never
	for i := range s.places {
		p := s.places[i].Load()
		switch {
		case p != nil && p.hash == r.hash && p.key == r.key:
			return &s.places[i]
		case p == nil || p.round != r.round:
			best, soonest = &s.places[i], -1
		case p.until < soonest:
			best, soonest = &s.places[i], p.until
		}
	}
	return best
}

// holds reports whether r is about the key, and still true.
func (r *refusal) holds(l *Look) bool {
	return r.hash == l.hash && r.round == l.round && l.at < r.until && r.key == l.key
}

// tell is the answer to a request that is refused for r.
func (r *refusal) tell(l *Look) limiter.Result {
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
func later(at, d time.Duration) time.Duration {
	if at+d < at {
		return limiter.Never
	}
	return at + d
}
