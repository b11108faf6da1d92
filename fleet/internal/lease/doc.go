// Package lease takes tokens from a server several at a time and hands them out one by one, so
// that a busy key does not cost one round trip per request.
//
// # Bound
//
// A node holds at most Config.Max tokens of a key that it has not handed out. In any span of time,
// m nodes together therefore allow at most m·Max more than the limiter itself: those that were held
// when the span began. In the long run they allow no more than the limiter.
//
// # Size of a lease
//
// A key that is used rarely has no lease: each request asks the server. If the server is asked
// again before half of Age has passed, the size of the next lease doubles, up to Max. Otherwise it
// halves. It never exceeds an eighth of the tokens that the server says remain. Near the limit it
// is therefore 1, which means no lease, so nodes do not hold tokens that others need.
//
// # Age
//
// The tokens of a key that has not been used for Age are given back, at most 2·Age after its last
// use: a timer of the pool runs while it knows any key. Close gives all tokens back. The server is
// told how long ago the tokens were taken at most, and takes back those that still count. If the
// process ends without Close, at most Max tokens per key are lost, as if they had been used.
//
// # Memory
//
// At most Config.Keys keys are known. If there is no room for a new key, the key that has not been
// used for the longest time is evicted, and its tokens are given back.
package lease
