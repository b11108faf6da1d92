package tally

// AddFailures adds n failures at once, to reach counts that a test could not count to.
func AddFailures(c *Calls, n uint64) { c.counters[callsCounter].AddWord(n * bothOnes) }

// Striped returns how many calls are counted in stripes.
func Striped(c *Calls) uint64 {
	return c.counters[callsCounter].Load() - c.counters[callsCounter].Word()
}
