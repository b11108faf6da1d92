// Package linear checks that limiters, breakers and groups are linearizable (Herlihy and Wing,
// 1990). Several goroutines make calls at once. There must be an order of these calls, in agreement
// with the clock, in which a single goroutine would get the same answers. Porcupine looks for that
// order. The models in these tests are the documented behavior in a few lines. The package has only
// tests.
package linear
