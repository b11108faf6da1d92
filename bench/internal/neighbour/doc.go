// Package neighbour measures what two threads cost each other that work on things that lie side by side in memory.
//
// A cache line of 64 bytes is in one core at a time when it is written to, and on many processors its pair of 128
// bytes is fetched with it. So two counters that share nothing but a line slow each other down as if they were one.
package neighbour
