package tally

// Inflate adds n failures at once, to reach counts that a test could not count to.
func Inflate(c *Calls, n uint64) { c.words[judged].Add(n * both) }

// Slot is the place of a time in nanoseconds.
func Slot(nanos int64) int { return slot(nanos) }

// Guess is the place at which the search for a time's place begins.
func Guess(nanos int64) int { return int(guesses[lead(nanos)]) }

// Spread makes the tally count successes in cells, as it does when it finds that many record
// at once.
func Spread(c *Calls) { c.spread.CompareAndSwap(nil, new(spread)) }

// Spreads reports whether the tally counts successes in cells.
func Spreads(c *Calls) bool { return c.spread.Load() != nil }

// SpreadOut spreads a count, as it does itself when it finds that many add at once.
func SpreadOut(c *Count) { c.spread.CompareAndSwap(nil, new(spread)) }

// IsSpread reports whether a count is spread.
func IsSpread(c *Count) bool { return c.spread.Load() != nil }

// Crowded is asked of every so many adds.
func Crowded(read func() uint64) bool { return crowded(read) }

// Seldom is how many adds there are for each time that Crowded is asked.
const Seldom = seldom
