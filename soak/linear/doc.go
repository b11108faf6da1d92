// Package linear holds tests alone: what many goroutines saw of a limiter, a breaker or
// a group at once must be what one could have seen, who did the same one by one in some
// order that agrees with the clock (linearizability; Herlihy and Wing, 1990). Porcupine
// looks for that order; the models here are the few lines that the promises come to.
package linear
