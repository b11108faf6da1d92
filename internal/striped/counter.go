// Package striped has a counter that stays cheap when many goroutines add to it at once.
package striped

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// Counter is one word until two additions collide. From then on it adds to stripes, each on a cache
// line of its own, as the JDK's LongAdder does. The zero value is 0. All methods may be called from
// any number of goroutines.
type Counter struct {
	word    atomic.Uint64
	stripes atomic.Pointer[stripes]
}

const stripeCount = 16

// stripes are 128 bytes apart, because some processors fetch cache lines in pairs.
type stripes [stripeCount]struct {
	n atomic.Uint64
	_ [120]byte
}

// Add adds delta.
func (c *Counter) Add(delta uint64) {
	if !c.addToWord(c.word.Load(), delta) {
		c.addStriped(delta)
	}
}

// addToWord adds delta to the word, of which n was read. It fails if the counter is striped, or if
// another goroutine has added meanwhile.
func (c *Counter) addToWord(n, delta uint64) bool {
	return c.stripes.Load() == nil && c.word.CompareAndSwap(n, n+delta)
}

// AddWord adds delta to the word that Word returns, even if the counter is striped.
func (c *Counter) AddWord(delta uint64) { c.word.Add(delta) }

// Word returns the part of the count that is not in stripes.
func (c *Counter) Word() uint64 { return c.word.Load() }

// Load returns a value that the counter had during the call. The word is read before the stripes.
func (c *Counter) Load() uint64 {
	n := c.word.Load()
	if s := c.stripes.Load(); s != nil {
		for i := range s {
			n += s[i].n.Load()
		}
	}
	return n
}

// Stripe stripes the counter now, without waiting for a collision.
func (c *Counter) Stripe() { c.stripes.CompareAndSwap(nil, new(stripes)) }

// preferredStripe holds the index of the stripe that a processor uses: a pool returns what the same
// processor has put back.
var preferredStripe = sync.Pool{New: func() any { i := rand.Uint32(); return &i }}

func (c *Counter) addStriped(delta uint64) {
	s := c.stripes.Load()
	if s == nil {
		c.Stripe()
		s = c.stripes.Load()
	}
	i := preferredStripe.Get().(*uint32)
	stripe := &s[*i%stripeCount].n
	if n := stripe.Load(); !stripe.CompareAndSwap(n, n+delta) {
		*i = rand.Uint32() // another processor uses this stripe
		s[*i%stripeCount].n.Add(delta)
	}
	preferredStripe.Put(i)
}
