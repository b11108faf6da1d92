// Command bench compares weir with other libraries, and with what the machine itself can do.
//
//	go run -C dev/bench . compare    all comparisons, serial, on two threads and with eight goroutines on two cores
//	go run -C dev/bench . quick      the main comparisons, in less than a minute
//	go run -C dev/bench . guard      checks whether a cost has doubled; for CI, in less than half a minute
//	go run -C dev/bench . results    writes RESULTS.md and its charts
//
// The flags -rounds and -each set how long to measure. The flag -only is a regular expression that
// selects rows by name.
//
// The two sides of a comparison take turns. The result is the median of the ratios of neighboring
// turns, with the interval that benchstat gives. compare and quick fail if a ratio is above its
// bound by more than the interval. On two threads they fail only if a canary shows that two cores
// are free. Each loop counts its successful operations, and a loop that did not do its work is an
// error.
//
// The rows whose names begin with "fleet: " start their own redis-server, on a unix socket. Without
// redis-server, compare and results fail unless -only leaves these rows out.
package main
