package inflight

// evidence is a kind of evidence of congestion, from the weakest to the strongest.
type evidence uint8

const (
	none         evidence = iota
	slowCalls             // most calls are slow
	words                 // the service says that it is overloaded
	lateFailures          // calls fail as late as their callers allow
	silence               // no call succeeds
)
