// Command bench compares weir with what one would use instead, and with what the machine itself can do.
//
//	go run -C bench . compare    all comparisons, serial, on two threads and with eight goroutines on two cores
//	go run -C bench . quick      the main ones, in less than a minute
//	go run -C bench . guard      has a cost doubled? for CI, in less than half a minute
//	go run -C bench . results    writes RESULTS.md and its pictures: comparisons, scaling, contention, memory
//
// Flags say how long to measure (-rounds, -each) and what (-only, a regular expression on the names of rows).
//
// The two sides of a comparison take turns, and what is judged is the median of the ratios of neighbouring turns, with
// the interval that benchstat gives. compare and quick fail where a ratio is above its bound by more than that, and on
// two threads only while a canary says that there are two cores to be had. Each loop counts what came of its calls,
// and one that did not do its work is an error.
//
// The comparisons of decisions on a Redis start a redis-server of their own, on a unix socket; without one, compare and
// results fail unless -only leaves those out. They are rows whose names begin with "fleet: ".
package main
