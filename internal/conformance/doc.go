// Package conformance replays the recorded behavior of other systems, and compares weir with them.
//
// Its tests read a directory of traces, NAME.jsonl.gz, with one sequence of steps per line: the
// inputs that a reference was given, and its outputs. They give weir the same inputs and expect the
// same outputs. For each file they print
//
//	NAME: replayed R of N sequences, S steps, skipped L (reason: count, …), mismatches M
//
// and fail on any mismatch. Where weir differs on purpose, there is a row in the table of
// divergences. The inputs of a sequence or a step decide whether a row applies, never the identity
// of the sequence, so the tests also work with other sequences in the same formats. A skipped
// sequence is replayed up to the step from which it cannot be followed. If only some outputs of a
// step can be compared, the step is counted on a line of its own.
//
// The traces in testdata are the default. The environment variable WEIR_TRACES names another
// directory. Use -count=1 then, because go test does not notice changes of files outside the
// module. testdata/FORMATS.md describes the formats.
package conformance
