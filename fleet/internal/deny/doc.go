// Package deny remembers refusals, so that a key that has been refused is refused
// again without asking, for as long as the answer cannot be another.
//
// What a limiter has refused for ρ it refuses until ρ has passed, whatever others do meanwhile: taking
// permits only makes it worse. So a [Cache] never refuses what the server would have
// let through, with two exceptions, both on the strict side: permits that
// are given back, and a limit that is raised. Those of this process are made known
// by Forget; what other processes do is seen when ρ has passed, or the longest time that a
// cache remembers.
//
//	look := cache.Look(key, n)
//	if look.Refused {
//		return look.Result // nobody was asked
//	}
//	result := … // ask
//	if !result.OK {
//		look.Remember(result)
//	}
//
// A refusal of n permits says nothing about a request for fewer, which is let
// through to be asked about. One for more is refused as well, and told to come back
// when all permits are there again: how long it would have to wait at least
// is not known, but that is enough. What an answer from the cache says about permits is as of the
// refusal that it repeats.
//
// # Memory
//
// A cache has a fixed number of places, in sets of eight. A refusal that finds its set full takes
// the place of one that is over or, failing that, of the one that ends soonest.
// What is lost costs a question to the server, and changes no decision.
package deny
