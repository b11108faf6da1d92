// Package deny remembers refusals, so that a request that the server would refuse is refused
// without asking.
//
// If a limiter says to retry after d, it refuses the request until d has passed, whatever other
// callers do meanwhile: taking tokens only prolongs the wait. A [Cache] therefore never refuses
// what the server would allow, with two exceptions: tokens that are given back, and a limit that is
// raised. Call Forget if this process does that. If another process does, the cache notices it only
// when d has passed, or the longest time for which it remembers a refusal.
//
//	denial := cache.Lookup(key, n)
//	if denial.Refused {
//		return denial.Result // without asking
//	}
//	result := … // ask
//	if !result.OK {
//		denial.Remember(result)
//	}
//
// A refusal of n tokens says nothing about a request for fewer, so such a request asks the server.
// A request for more is refused as well. Its exact wait is not known, so it is told to retry when
// all tokens have returned. The time until the reset is computed again. The other values of a
// cached result are those of the refusal that it repeats.
//
// # Memory
//
// A cache has a fixed number of slots, in sets of eight. If the set of a refusal is full, it
// replaces a refusal that has ended or, failing that, the one that ends first. A lost refusal costs
// a question to the server and changes no decision.
package deny
