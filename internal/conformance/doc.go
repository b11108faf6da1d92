// Package conformance replays what other systems were recorded to do, and compares.
//
// Its tests read a folder of traces, NAME.jsonl.gz, one sequence of steps a line: the inputs
// that a reference was given and the outputs that it gave. They give ours the same inputs and
// ask for the same outputs. For each file they print
//
//	NAME: replayed R of N sequences, S steps, left out L (reason: count, …), mismatches M
//
// and fail on any mismatch. Where ours differs on purpose there is a row in the one table of
// divergences; whether it applies is decided by the inputs of a sequence or a step, never by
// which sequence it is, so other sequences of the same formats do as well. A sequence that is
// left out is replayed up to the step from which it cannot be followed. A step can be compared
// in part; the steps of which that holds are printed on a line of their own.
//
// The traces in testdata are read by default, those of another folder where the environment
// variable WEIR_TRACES names one. (Give -count=1 then: go test does not see that files outside the
// module have changed.) The formats are described in testdata/FORMATS.md.
package conformance
