// Package measure finds the cost of an operation, and compares the costs of two operations.
//
// The operation is in a [Loop], which repeats it and returns how many repetitions had the expected
// result. A cost is returned only if every repetition had that result. So a limiter that refuses by
// mistake, or a breaker that drops calls at random, cannot look fast.
//
// Two loops take turns, A B A B and so on, because the speed of a shared machine drifts. The ratio
// of neighboring turns is stable, and the spread of these ratios is the noise. Medians and their
// intervals are those of benchstat.
package measure
