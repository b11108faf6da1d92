package tally

import "testing"

// Inflate adds n failures at once, to reach counts that a test could not count to.
func Inflate(c *Calls, n uint64) { c.words[judged].Add(n * both) }

// Slot is the place of a time in nanoseconds.
func Slot(nanos int64) int { return slot(nanos) }

// Guess is the place at which the search for a time's place begins.
func Guess(nanos int64) int { return int(guesses[lead(nanos)]) }

// Spreads reports whether the tally counts successes in cells.
func Spreads(c *Calls) bool { return c.spread.Load() != nil }

// InCells is how many successes the tally counted in cells.
func InCells(c *Calls) uint64 { return c.spread.Load().sum() }

// IsSpread reports whether a count is spread.
func IsSpread(c *Count) bool { return c.spread.Load() != nil }

// Changing is asked about the word at every so many adds.
func Changing(read func() uint64) bool { return changing(read) }

// Seldom is how many adds there are for each time that it is asked.
const Seldom = seldom

// Crowd makes every word that is looked at crowded or not, until the test is over.
func Crowd(t *testing.T, is bool) {
	t.Cleanup(func() { crowded = changing })
	crowded = func(func() uint64) bool { return is }
}
