// Package neighbour measures how much two threads slow each other down if they work on objects that
// are next to each other in memory.
//
// Only one core at a time can hold a written cache line of 64 bytes, and many processors fetch
// lines in pairs of 128 bytes. So two unrelated counters on the same line are as slow as one shared
// counter.
package neighbour
