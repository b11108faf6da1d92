package tally

// Inflate adds n failures at once, to reach counts that a test could not count to.
func Inflate(c *Calls, n uint64) { c.words[judged].Add(n * both) }

// Slot is the place of a time in nanoseconds.
func Slot(nanos int64) int { return slot(nanos) }

// Guess is the place at which the search for a time's place begins.
func Guess(nanos int64) int { return int(guesses[lead(nanos)]) }
