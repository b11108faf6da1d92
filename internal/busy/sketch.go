package busy

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"
	"time"
)

// The size of a sketch.
const (
	parts   = 4  // so that callers with different keys rarely wait for each other
	Entries = 32 // of a part in a period
	Period  = 5 * time.Minute
)

// Sketch counts refusals by key: a SpaceSaving sketch (Metwally, Agrawal and El Abbadi 2005) of the
// present Period and one of the Period before. Each key belongs to one of its parts.
//
// If a sketch has counted n refusals in both periods, the bounds of each count differ by at most
// n/Entries, and every key with more refusals than that is in it. A sketch takes at most 8 kB, and
// 22 kB more if it shows keys. It keeps a hash of 64 bits for each key, and keeps the text of the
// key only if it shows keys.
//
// All methods are safe for concurrent use. The methods of a nil Sketch do nothing.
type Sketch[K comparable] struct {
	epoch time.Time
	parts [parts]sketchPart
}

// sketchPart is a sketch of a part of the keys.
type sketchPart struct {
	mu                sync.Mutex
	show              bool
	period            int64 // number of the present period
	present, previous *counters
	_                 [64]byte // keeps two locks on different cache lines
}

// Key is a key that was refused, with bounds of the number of its refusals.
type Key struct {
	Limiter         string
	Key             string
	AtLeast, AtMost int64
}

// seed is the hash seed of all sketches of the process, so that a key has the same name in all of
// them.
var seed = maphash.MakeSeed()

// New returns a sketch without keys. If show is true, the sketch keeps the texts of keys.
func New[K comparable](show bool) *Sketch[K] {
	s := &Sketch[K]{epoch: time.Now()}
	s.Show(show)
	return s
}

// Show sets whether the texts of keys are kept. If that changes, it deletes all keys.
func (s *Sketch[K]) Show(show bool) {
	if s == nil {
		return
	}
	for i := range s.parts {
		p := &s.parts[i]
		p.mu.Lock()
		if p.show != show {
			p.show, p.present, p.previous = show, nil, nil
		}
		p.mu.Unlock()
	}
}

// Add counts a refusal of the key.
func (s *Sketch[K]) Add(key K) {
	if s == nil {
		return
	}
	hash, period := maphash.Comparable(seed, key), s.period()
	p := &s.parts[hash%parts]
	if !p.count(hash, period) {
		// not under the lock, because it may call code of the user
		p.insert(hash, period, textOf(key))
	}
}

func (s *Sketch[K]) period() int64 { return int64(time.Since(s.epoch) / Period) }

// count counts a refusal of a key, unless the key is new and its text is needed.
func (p *sketchPart) count(hash uint64, period int64) (counted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beginPeriod(period)
	if p.present.increment(hash) {
		return true
	}
	if p.show {
		return false
	}
	p.present.insert(hash, "")
	return true
}

// insert counts a refusal of a key that count did not find.
func (p *sketchPart) insert(hash uint64, period int64, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beginPeriod(period)
	if p.present.increment(hash) {
		return
	}
	if !p.show {
		text = ""
	}
	p.present.insert(hash, text)
}

// beginPeriod starts the given period. If the present one is the next, its goroutine is late. If
// the present one is later than that, the period is one of another clock, such as that of a
// testing/synctest bubble.
func (p *sketchPart) beginPeriod(period int64) {
	switch later := period - p.period; {
	case later == 1:
		p.previous, p.present = p.present, nil
	case later > 1, later < -1:
		p.previous, p.present = nil, nil
		p.period = period
	}
	p.period = max(p.period, period)
	if p.present == nil {
		p.present = &counters{}
	}
}

// Busiest returns the n keys with the highest certain count of refusals, the most refused key
// first.
func (s *Sketch[K]) Busiest(limiter string, n int) []Key {
	if s == nil || n <= 0 {
		return nil
	}
	var all []foundKey
	for i := range s.parts {
		all = s.parts[i].appendKeys(all, s.period())
	}
	slices.SortFunc(all, func(a, b foundKey) int {
		return cmp.Or(cmp.Compare(b.atLeast, a.atLeast), cmp.Compare(b.atMost, a.atMost), cmp.Compare(a.hash, b.hash))
	})
	keys := make([]Key, min(n, len(all)))
	for i := range keys {
		f := &all[i]
		keys[i] = Key{Limiter: limiter, Key: f.text, AtLeast: f.atLeast, AtMost: f.atMost}
		if f.text == "" {
			keys[i].Key = nameOf(f.hash)
		}
	}
	return keys
}

// foundKey is an entry of a part, with its bounds.
type foundKey struct {
	hash            uint64
	text            string
	atLeast, atMost int64
}

// appendKeys appends all keys of the part. If only one of the two periods has a key, the key was
// refused in the other period at most as often as the least refused key of that other period.
func (p *sketchPart) appendKeys(to []foundKey, period int64) []foundKey {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beginPeriod(period)
	before := p.previous
	if before == nil {
		before = &counters{}
	}
	for i := range p.present.used {
		f := p.present.foundAt(i)
		if j := before.find(f.hash); j >= 0 {
			other := before.foundAt(j)
			f.atLeast += other.atLeast
			f.atMost += other.atMost
		} else {
			f.atMost += before.maxUncounted()
		}
		to = append(to, f)
	}
	for j := range before.used {
		if f := before.foundAt(j); p.present.find(f.hash) < 0 {
			f.atMost += p.present.maxUncounted()
			to = append(to, f)
		}
	}
	return to
}
