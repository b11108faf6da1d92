package limiter

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/friend"
)

// table is a hash table of buckets with open addressing, so that finding a bucket usually touches
// one cache line. The hash is stored beside each key, so that keys with different hashes are not
// compared.
//
// An idle bucket is one that is full again. It need not be removed: a new key replaces it if the
// search for the new key finds its slot, and rebuild leaves it out.
type table[K comparable] struct {
	slots []slot[K]
	taken int // slots with a hash
	keys  int // slots with a key
	next  int // the slot at which evictIdle continues

	// lastEvicted is the latest position at which an evicted bucket was full. A new key begins with
	// that position, because it may be an evicted key that is used at an earlier time.
	lastEvicted int64
}

// slot is a bucket. It is empty if hash is 0. If full is alwaysFull, the slot has lost its key.
// Searches then continue behind the slot, because other keys may lie there.
type slot[K comparable] struct {
	hash uint64
	full int64 // the position at which the bucket is full
	key  K
}

func (s *slot[K]) hasKey() bool { return s.hash != 0 && s.full != alwaysFull }

// find returns the slot of the key. If there is none, it returns the slot for a new key: the first
// slot of the search whose bucket was full before the position idle, or the empty slot at the end
// of the search.
func (t *table[K]) find(hash uint64, key K, idle int64) (s *slot[K], found bool) {
	if len(t.slots) == 0 {
		t.slots = make([]slot[K], minSlots)
	}
	var free *slot[K]
	// A search begins at an even slot: two slots with string keys are one cache line.
	at, _ := bits.Mul64(hash, uint64(len(t.slots)))
	for i := int(at) &^ 1; ; i++ {
		if i == len(t.slots) {
			i = 0
		}
		s = &t.slots[i]
		switch {
		case s.hash == hash && s.key == key && s.full != alwaysFull:
			return s, true
		case s.hash == 0:
			if free != nil {
				return free, false
			}
			return s, false
		case free == nil && s.full < idle:
			free = s
		}
	}
}

const minSlots = 8

// isCrowded reports whether the table needs a rebuild before a key takes an empty slot, to keep
// searches short.
func (t *table[K]) isCrowded() bool { return t.taken >= len(t.slots)*3/4 }

// put stores a new bucket in a slot that find returned. It reports whether it evicted a key.
func (t *table[K]) put(s *slot[K], bucket slot[K]) (evicted bool) {
	if s.hash == 0 {
		t.taken++
	}
	if evicted = s.hasKey(); evicted {
		t.lastEvicted = max(t.lastEvicted, s.full)
	} else {
		t.keys++
	}
	*s = bucket
	return evicted
}

// rebuild moves the keys that are not idle to a new array with room for more, and returns the
// number of evicted keys.
func (t *table[K]) rebuild(idle int64) (evicted int) {
	keys := 0
	for i := range t.slots {
		switch s := &t.slots[i]; {
		case s.hash == 0:
		case s.full >= idle:
			keys++
		default:
			t.lastEvicted = max(t.lastEvicted, s.full)
		}
	}
	old := *t
	*t = table[K]{slots: make([]slot[K], keys*5/3+minSlots), lastEvicted: t.lastEvicted}
	for i := range old.slots {
		if from := &old.slots[i]; from.hash != 0 && from.full >= idle {
			to, _ := t.find(from.hash, from.key, alwaysFull)
			t.put(to, *from)
		}
	}
	return old.keys - keys
}

// remove removes a key, idle or not, and reports whether it was there.
func (t *table[K]) remove(hash uint64, key K) bool {
	s, found := t.find(hash, key, alwaysFull)
	if found {
		s.clearKey()
		t.keys--
	}
	return found
}

// evictIdle checks the next slots, beginning again at the first after the last, and evicts idle
// keys. It returns their number.
func (t *table[K]) evictIdle(slots int, idle int64) (evicted int) {
	for range min(slots, len(t.slots)) {
		if t.next++; t.next >= len(t.slots) {
			t.next = 0
		}
		if s := &t.slots[t.next]; s.hasKey() && s.full < idle {
			t.lastEvicted = max(t.lastEvicted, s.full)
			s.clearKey()
			evicted++
		}
	}
	t.keys -= evicted
	return evicted
}

func (s *slot[K]) clearKey() {
	var none K
	s.key, s.full = none, alwaysFull
}

// shard is a part of the keys of a Group, under one lock.
type shard[K comparable] struct {
	mu        sync.Mutex
	tiers     []tierTable[K]
	held      bool          // there may be holds
	holds     map[K]keyHold // of the keys that are held
	evictions int64
	latest    time.Duration // the latest time of a request
	all       []hold        // by tier, the hold of all keys; nil if there is none
	_         [64]byte      // keeps the locks of two shards on different cache lines
}

// tierTable holds the keys of one tier, and its limits.
type tierTable[K comparable] struct {
	table    table[K]
	limits   *limits
	refunded int64 // all units ever given back
	// Tokens taken before that time are not given back, because a key was forgotten since then, or
	// its hold has ended and its bucket is in the table.
	noRefundBefore time.Duration
}

// keyPosition says in which shard, tier and slot a key belongs.
type keyPosition[K comparable] struct {
	shard *shard[K]
	tier  int
	hash  uint64 // not 0
	key   K
}

func (g *Group[K]) hash(key K) uint64 { return maphash.Comparable(g.seed, key) }

func (g *Group[K]) shardOf(hash uint64) *shard[K] { return &g.shards[hash%uint64(len(g.shards))] }

// locate fills in where a key belongs. It calls TierOf, so the caller must not hold a lock. It
// fills in p because a returned struct would be copied through memory.
func (g *Group[K]) locate(p *keyPosition[K], key K) {
	p.key, p.tier = key, 0
	if g.tierOf != nil {
		p.tier = min(max(g.tierOf(key), -1), len(g.tiers)-2) + 1
	}
	hash := g.hash(key)
	p.shard, p.hash = g.shardOf(hash), hash|1
}

func (p *keyPosition[K]) tierTable() *tierTable[K] { return &p.shard.tiers[p.tier] }

// storedCopy returns the copy of a new key to store.
func (g *Group[K]) storedCopy(key K) K {
	if !g.clones { // the usual key, which would be allocated
		return key
	}
	return any(key).(friend.Cloner[K]).Clone(friend.Key{})
}

// idle returns a position. A bucket that was full before that position is idle: it is like a new
// bucket.
func (l *limits) idle(at time.Duration) int64 { return l.units(l.clamp(at)) - l.slack }

// keys returns the remembered keys.
func (s *shard[K]) keys() (keys []K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.tiers {
		t := &s.tiers[i].table
		for j := range t.slots {
			if t.slots[j].hasKey() {
				keys = append(keys, t.slots[j].key)
			}
		}
	}
	return keys
}

// acquireLocked takes n tokens of a key. It reports false if there is no room for the key. The
// caller holds the lock of the shard.
func (g *Group[K]) acquireLocked(p *keyPosition[K], r *Result, back *taken, at time.Duration, n int) bool {
	t, h := p.tierTable(), noHold
	if p.shard.held {
		h = g.holdOf(p, at)
	}
	s, known := t.table.find(p.hash, p.key, t.limits.idle(at))
	if !known {
		if uint(n)-1 >= t.limits.counted || h.remaining(at) > 0 { // nothing will be taken
			t.limits.peek(r, at, max(t.table.lastEvicted, p.fullAfterHold()), h, 0, n)
			return true
		}
		if s = g.addKey(p, s, at); s == nil {
			return p.acquireAfterHold(r, at, h, n)
		}
		s.full = max(s.full, p.fullAfterHold())
	}
	s.full = t.limits.takeFrom(r, at, s.full, h, n)
	if back != nil && r.OK && n > 0 && t.limits.counted > 0 {
		*back = taken{n: n, at: at, end: s.full, refunded: t.refunded, limits: t.limits}
	}
	return true
}

// acquireAfterHold takes n tokens of a key that was held and for which there is no room in the
// table. It reports false if the key was not held.
func (p *keyPosition[K]) acquireAfterHold(r *Result, at time.Duration, h hold, n int) bool {
	own, known := p.shard.holds[p.key]
	if known {
		own.full = p.tierTable().limits.takeFrom(r, at, own.full, h, n)
		p.shard.holds[p.key] = own
	}
	return known
}

// fullAfterHold returns the position at which the bucket is full that a key uses which was held.
func (p *keyPosition[K]) fullAfterHold() int64 {
	if own, known := p.shard.holds[p.key]; known {
		return own.full
	}
	return alwaysFull
}

// predictLocked fills in the answer that acquireLocked would give if ahead other tokens were taken
// first.
func (g *Group[K]) predictLocked(p *keyPosition[K], r *Result, at time.Duration, ahead int64, n int) bool {
	t, h := p.tierTable(), noHold
	if p.shard.held {
		h = g.holdOf(p, at)
	}
	s, known := t.table.find(p.hash, p.key, t.limits.idle(at))
	full := t.table.lastEvicted
	own, wasHeld := p.shard.holds[p.key]
	switch {
	case known:
		full = s.full
	case wasHeld:
		full = max(full, own.full)
	case uint(n)-1 >= t.limits.counted, h.remaining(at) > 0:
	case !g.makeRoom(p, s, at):
		return false
	}
	t.limits.peek(r, at, full, h, ahead, n)
	return true
}

// addKey adds a new key with a full bucket, in the slot that find returned if possible. It returns
// nil if there is no room.
func (g *Group[K]) addKey(p *keyPosition[K], s *slot[K], at time.Duration) *slot[K] {
	t := p.tierTable()
	if !g.makeRoom(p, s, at) || !s.hasKey() && !incrementBelow(&g.keyCount, g.maxKeys) {
		return nil
	}
	if s.hash == 0 && t.table.isCrowded() {
		idle := t.limits.idle(at)
		g.recordEvictions(p.shard, t.table.rebuild(idle))
		s, _ = t.table.find(p.hash, p.key, idle)
	}
	if t.table.put(s, slot[K]{hash: p.hash, key: g.storedCopy(p.key), full: t.table.lastEvicted}) {
		p.shard.evictions++
	}
	return s
}

// makeRoom reports whether there is room for a new key. It evicts idle keys if necessary, unless s,
// the slot that find returned, holds an idle key that the new one can replace.
func (g *Group[K]) makeRoom(p *keyPosition[K], s *slot[K], at time.Duration) bool {
	if p.key != p.key { //nolint:gocritic // a NaN would never be found again
		return false
	}
	if s.hasKey() || g.keyCount.Load() < g.maxKeys {
		return true
	}
	g.evictIdle(p.shard, at)
	if other := &g.shards[g.nextShard.Add(1)%uint64(len(g.shards))]; other != p.shard && other.mu.TryLock() {
		g.evictIdle(other, at)
		other.mu.Unlock()
	}
	return g.keyCount.Load() < g.maxKeys
}

// scanLength is how many slots are searched for idle keys, or holds for expired ones, when there is
// no room.
const scanLength = 16

func (g *Group[K]) evictIdle(s *shard[K], at time.Duration) {
	for i := range s.tiers {
		t := &s.tiers[i]
		g.recordEvictions(s, t.table.evictIdle(scanLength, t.limits.idle(at)))
	}
}

func (g *Group[K]) recordEvictions(s *shard[K], keys int) {
	s.evictions += int64(keys)
	g.keyCount.Add(int64(-keys))
}
