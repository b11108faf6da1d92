// Package sim runs a guard against a simulated service in virtual time. The guard is a real library,
// unmodified; the service and its callers are simulated, and every goroutine lives in a bubble of
// testing/synctest, so that a minute takes milliseconds.
//
// All random numbers of the service and of its callers are drawn from one seed, and each call draws its
// own when it is offered. So what a guard does to one call does not change the numbers of another, and
// all guards meet the same calls.
package sim
