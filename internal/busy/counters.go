package busy

import "slices"

// counters is a SpaceSaving sketch: the counts of up to Entries keys. A key without a counter takes
// the one with the lowest count and continues from there, so no count is too low, and none is too
// high by more than the error that is stored with it. There are at most Entries counters, so a
// search through all hashes takes less time than an index.
type counters struct {
	used   int
	hashes [Entries]uint64
	counts [Entries]int64
	errors [Entries]int64
	texts  []string // of Entries keys, or nil if no key has a text
}

// find returns the index of the key, or -1.
func (c *counters) find(hash uint64) int {
	return slices.Index(c.hashes[:c.used], hash)
}

// increment adds 1 to the count of the key, and reports whether the key has a counter.
func (c *counters) increment(hash uint64) bool {
	i := c.find(hash)
	if i < 0 {
		return false
	}
	c.counts[i]++
	return true
}

// insert counts a key that has no counter.
func (c *counters) insert(hash uint64, text string) {
	i := c.used
	if i < Entries {
		c.used++
	} else {
		i = c.lowestIndex()
	}
	c.hashes[i], c.errors[i] = hash, c.counts[i]
	c.counts[i]++
	if text != "" && c.texts == nil {
		c.texts = make([]string, Entries)
	}
	if c.texts != nil {
		c.texts[i] = text
	}
}

// lowestIndex returns the index of the lowest count.
func (c *counters) lowestIndex() (at int) {
	for i := range c.counts {
		if c.counts[i] < c.counts[at] {
			at = i
		}
	}
	return at
}

// maxUncounted returns the maximum number of refusals of a key that has no counter.
func (c *counters) maxUncounted() int64 {
	if c.used < Entries {
		return 0
	}
	return c.counts[c.lowestIndex()]
}

func (c *counters) foundAt(i int) foundKey {
	f := foundKey{hash: c.hashes[i], atLeast: c.counts[i] - c.errors[i], atMost: c.counts[i]}
	if c.texts != nil {
		f.text = c.texts[i]
	}
	return f
}
