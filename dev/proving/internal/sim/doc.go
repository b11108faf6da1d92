// Package sim runs a guard against a simulated service in virtual time. The guard is a real
// library, unmodified; the service and its callers are simulated, and every goroutine lives in a
// bubble of testing/synctest, so that a minute takes milliseconds.
//
// All random numbers of the service and of its callers are drawn from one seed, and each call draws
// its own when it is offered. So what a guard does to one call does not change the numbers of
// another, and all guards meet the same calls.
//
// One goroutine handles all events in order, and waits after each until the others are blocked. So
// the same seed gives the same figures, whatever the scheduler does, unless a guard draws numbers
// of its own or wakes several calls at one instant and lets the scheduler choose. For the same
// reason no two calls race within a guard, as they do in a program: the simulation shows what a
// guard decides, and neither what it costs nor whether it is free of races.
//
// Nothing in the model belongs to one guard. A call costs nothing until a guard sends it, a refused
// attempt ends at once, and errors of the service differ by their text alone, apart from a method
// RetryAfter of those that carry a Retry-After.
package sim
