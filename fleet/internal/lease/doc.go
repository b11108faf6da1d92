// Package lease takes permits from a server several at a time and hands them out one
// by one, so that a busy key does not cost a round trip each time.
//
// # The bound
//
// A node holds at most Config.Max permits of a key that it has not handed out. So in any span of time m nodes
// together admit at most what the limiter itself admits in that span, and
// m·Max more: those that were held when the span began. In the long run they admit what
// the limiter admits.
//
// # The size of a lease
//
// A key that is used now and then has none: each request is asked about. Where the
// server is asked again before half of Age has passed, the lease grows
// twofold, to Max at most; where it takes longer it shrinks by half. It is never more
// than an eighth of what the server says remains, so near the limit it is
// 1, which is none, and nodes do not hold what others need.
//
// # Age
//
// What a key has not been asked for in Age is given back. No goroutine does it, but the next request
// that has to go to the server anyway, for one key at a time; and Close gives back all. The server is told how long
// ago they were taken at most, and takes back what still counts. Where the process
// ends without, at most Max permits a key are lost, as if they had been used.
//
// # Memory
//
// At most Config.Keys keys are known. When there is no room the one that was asked for longest ago gives way, and
// its permits are given back.
package lease
