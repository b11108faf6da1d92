// Package linear checks that limiters, breakers and groups are linearizable (Herlihy and Wing, 1990): the
// answers that concurrent goroutines got must be those that one goroutine could get that makes the same
// calls one by one, in some order that agrees with the clock. Porcupine looks for that order. The models
// in these tests are the documented behavior in a few lines. The package has only tests.
package linear
