package limiter

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir/internal/keyed"
)

// EstimatesConfig configures [Estimates].
type EstimatesConfig struct {
	// Quantile is the share of requests that cost no more than their estimate, above 0 and at most
	// 1: at 0.5 half of them leave a debt, and at 1 hardly any. Required.
	Quantile float64
	// First is the estimate for a key of which no cost is known, at least 1. Required.
	First int
	// Most bounds the estimates. Set it to the Burst of the limiter, which refuses a request for
	// more tokens for ever. Default no bound.
	Most int
	// Window is how long a cost counts, or for up to twice as long. Default an hour.
	Window time.Duration
	// MaxKeys is how many keys are remembered. The estimate for a further key is First, until
	// another key has no costs that count. Default 10,000.
	MaxKeys int
}

// Validate returns an error that names every invalid field, or nil.
func (c EstimatesConfig) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("limiter: "+format, args...)) }
	if !(c.Quantile > 0 && c.Quantile <= 1) { // also if it is NaN
		fault("Quantile is %v, must be above 0 and at most 1", c.Quantile)
	}
	if c.First < 1 {
		fault("First is %d, must be at least 1", c.First)
	}
	if c.Most < 0 || c.Most > 0 && c.Most < c.First {
		fault("Most is %d, must be at least First, which is %d (or 0 for no bound)", c.Most, c.First)
	}
	if c.Window < 0 || c.Window > maxWindow {
		fault("Window is %s, must be above 0 and at most %s (or 0 for the default)", c.Window, maxWindow)
	}
	if c.MaxKeys < 0 {
		fault("MaxKeys is %d, must be at least 1 (or 0 for the default)", c.MaxKeys)
	}
	return errors.Join(faults...)
}

// Estimates estimates what a request of a key will cost, from the costs of its recent requests.
// Reserve the estimate, and settle the cost:
//
//	r := limiter.Reserve(tokens, estimates.Of(model))
//	…
//	estimates.Record(model, used)
//	r.Settle(used)
//
// An estimate is a quantile of a histogram, and up to 9 % above the exact one. A key takes 125 to
// 1,000 bytes, more if its costs differ much. All methods are safe for concurrent use, and none of
// them blocks. The zero value does not work: use NewEstimates.
type Estimates[K comparable] struct {
	config EstimatesConfig
	seed   maphash.Seed

	mu     sync.Mutex
	epoch  time.Time
	latest int64                     // the result of the last call of now
	keys   keyed.Map[K, costsOfAKey] // until their costs no longer count
}

// NewEstimates returns estimates without keys. It panics with the error of c.Validate if c is
// invalid.
func NewEstimates[K comparable](c EstimatesConfig) *Estimates[K] {
	mustBeValid(c.Validate())
	c.Most = cmp.Or(c.Most, math.MaxInt)
	c.Window = cmp.Or(c.Window, time.Hour)
	c.MaxKeys = cmp.Or(c.MaxKeys, 10_000)
	return &Estimates[K]{config: c, seed: maphash.MakeSeed(), epoch: time.Now()}
}

// Of returns the estimate for a request of the key, from 1 to Most.
func (e *Estimates[K]) Of(key K) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := e.now()
	if s := e.keys.Find(maphash.Comparable(e.seed, key), key); s != nil {
		if s.Value.advance(at, int64(e.config.Window)); s.Value.count() > 0 {
			return max(min(s.Value.quantile(e.config.Quantile), e.config.Most), 1)
		}
	}
	return e.config.First
}

// Record records what a request of the key has cost. A cost below 0 counts as 0.
func (e *Estimates[K]) Record(key K, cost int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := e.now()
	hash := maphash.Comparable(e.seed, key)
	s, known := e.keys.Place(hash, key, at)
	if !known {
		if key != key { //nolint:gocritic // a NaN would never be found again
			return
		}
		if !s.HasKey() && e.keys.Len() >= e.config.MaxKeys && e.keys.Evict(scanLength, at) == 0 {
			return
		}
		s, _ = e.keys.Add(s, hash, key, at)
		s.Value = costsOfAKey{since: at}
	}
	s.Value.advance(at, int64(e.config.Window))
	s.Value.add(cost)
	s.Until = s.Value.since + 2*int64(e.config.Window) - 1
}

// now returns the time since the epoch. It reads the clock with the lock held. So if the time is
// earlier than before, it is another clock, such as that of a new testing/synctest bubble, and the
// costs are forgotten.
func (e *Estimates[K]) now() int64 {
	at := min(int64(time.Since(e.epoch)), lastPosition)
	if at < e.latest {
		e.keys = keyed.Map[K, costsOfAKey]{}
		e.epoch, at = time.Now(), 0
	}
	e.latest = at
	return at
}

// costsOfAKey counts costs in the present window and the one before.
type costsOfAKey struct {
	since        int64 // when the present window began
	past, recent []costCount
}

// costCount is how many requests have had a cost whose bucket has the number.
type costCount struct{ bucket, n uint32 }

// advance begins another window if the present one is over.
func (c *costsOfAKey) advance(at, window int64) {
	switch windows := (at - c.since) / window; windows {
	case 0:
		return
	case 1:
		c.since += window
		c.past, c.recent = c.recent, c.past[:0]
	default:
		*c = costsOfAKey{since: at, past: c.past[:0], recent: c.recent[:0]}
	}
}

func (c *costsOfAKey) add(cost int) {
	b := bucketOfCost(cost)
	i, found := slices.BinarySearchFunc(c.recent, b, func(n costCount, b uint32) int { return cmp.Compare(n.bucket, b) })
	if !found {
		c.recent = slices.Insert(c.recent, i, costCount{bucket: b})
	}
	if n := &c.recent[i].n; *n < math.MaxUint32 {
		*n++
	}
}

func (c *costsOfAKey) count() (n int64) {
	for _, list := range [][]costCount{c.past, c.recent} {
		for _, b := range list {
			n += int64(b.n)
		}
	}
	return n
}

// quantile returns the highest cost of the bucket in which the quantile is.
func (c *costsOfAKey) quantile(q float64) int {
	rank := int64(math.Ceil(q * float64(c.count())))
	past, recent := c.past, c.recent
	for {
		list := &recent
		if len(recent) == 0 || len(past) > 0 && past[0].bucket < recent[0].bucket {
			list = &past
		}
		first := (*list)[0]
		if *list = (*list)[1:]; rank <= int64(first.n) || len(past)+len(recent) == 0 {
			return highestCost(first.bucket)
		}
		rank -= int64(first.n)
	}
}

// bucketOfCost returns the number of the bucket of a cost: 0 for none, and otherwise one of eight
// per power of two.
func bucketOfCost(cost int) uint32 {
	if cost < 1 {
		return 0
	}
	return 1 + uint32(math.Ceil(8*math.Log2(float64(cost))))
}

func highestCost(bucket uint32) int {
	if bucket == 0 {
		return 0
	}
	return int(min(math.Exp2(float64(bucket-1)/8), math.MaxInt/2))
}
