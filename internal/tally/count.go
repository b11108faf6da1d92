package tally

import "sync/atomic"

// Count is a count that begins as one word, and is spread once it is found that many add to
// it at the same time. The zero value is 0. All methods may be called from any number of
// goroutines.
type Count struct {
	word   atomic.Uint64
	spread atomic.Pointer[spread]
}

// Add adds 1.
func (c *Count) Add() {
	if more := c.Quick(); more <= 0 {
		c.Rest(more)
	}
}

// Quick is the first half of Add, so short that the compiler puts it into its caller. What
// it returns is for Rest, which need not be called if that is above 0.
func (c *Count) Quick() (more int64) {
	if c.spread.Load() != nil {
		return -1
	}
	return int64(c.word.Add(1) % seldom)
}

// Rest is the second half of Add: it adds to a count that is spread, or looks whether it
// should be.
func (c *Count) Rest(more int64) {
	switch {
	case more < 0:
		c.spread.Load().add()
	case more == 0 && crowded(c.word.Load):
		c.Spread()
	}
}

// Spread spreads the count from now on.
func (c *Count) Spread() { c.spread.CompareAndSwap(nil, new(spread)) }

// Load returns the count.
func (c *Count) Load() int64 { return int64(c.word.Load() + c.spread.Load().sum()) }
