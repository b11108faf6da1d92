// Package harm searches for worlds in which a guard harms: its users get fewer answers than with no
// guard, or with a simple one.
//
// A world is made of numbers from 0 to 1, its [Genes], which decide about everything in it. [Judge]
// runs guards in a world and compares their good calls with those of the simple guards: no guard,
// and gobreaker by rate. Outages are taken out, because a guard has to refuse there. [Climb]
// changes the genes of bad worlds to make them worse.
//
// An outage is a span in which, over the Window of a breaker with the default config, at least
// FailureRate of the calls fail without a guard, or as many in a row as a run needs. The way back
// after it is taken out too. It takes Window, Cooldown, Recovery, three times the longest call, of
// which at most ProbeTimeout counts, and the time of MinCalls calls per process. If the service
// says Retry-After, that wait is added. A guard must be back within the same time after the last
// trouble of a world.
package harm
