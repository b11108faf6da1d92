package tally

// Counts has the fields of window.Counts and converts to it.
type Counts struct {
	Successes           int64
	Failures            int64
	Slow                int64
	SlowFailures        int64
	Ignored             int64
	Refused             int64
	ConsecutiveFailures int64
}

// Plus returns the sum of two counts.
func (n Counts) Plus(m Counts) Counts {
	n.Successes += m.Successes
	n.Failures += m.Failures
	n.Slow += m.Slow
	n.SlowFailures += m.SlowFailures
	n.Ignored += m.Ignored
	n.Refused += m.Refused
	n.ConsecutiveFailures += m.ConsecutiveFailures
	return n
}

// pairOf returns the two fields of n that the given counter of a Calls counts.
func (n *Counts) pairOf(counter int) Pair {
	switch counter {
	case callsCounter:
		return Pair{n.Successes + n.Failures, n.Failures}
	case slowCounter:
		return Pair{n.Slow, n.SlowFailures}
	default:
		return Pair{n.Ignored, n.Refused}
	}
}

// Pair is the value of one counter: the number of calls, and of failures among them. The counter
// others counts ignored calls as Calls and refused calls as Failures.
type Pair struct{ Calls, Failures int64 }

// max returns the later of two readings of one counter.
func (p Pair) max(q Pair) Pair { return Pair{max(p.Calls, q.Calls), max(p.Failures, q.Failures)} }

// minus returns what was counted between two readings of one counter.
func (p Pair) minus(start Pair) Pair {
	return Pair{max(p.Calls-start.Calls, 0), max(p.Failures-start.Failures, 0)}
}
