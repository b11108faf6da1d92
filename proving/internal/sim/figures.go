package sim

import "time"

// Figures are what one run shows. A call is what a user asked for, with all its attempts; an attempt is
// what the guard let through to the service.
type Figures struct {
	Offered, Good, Failed, Refused int // calls, by their end
	// OfferedMeanwhile and so on are those that began while the service was in trouble.
	OfferedMeanwhile, GoodMeanwhile, FailedMeanwhile, RefusedMeanwhile int
	// GoodAfter and OfferedAfter count the calls that began after the trouble.
	OfferedAfter, GoodAfter int
	// Sent counts the attempts that reached the service, SentMeanwhile those in its trouble.
	Sent, SentMeanwhile int
	// BadSentBeforeOpen is the number of attempts that failed before the first opening.
	BadSentBeforeOpen int
	// Wasted is the work, in server time, on calls whose caller had gone. Worked is all work.
	Wasted, Worked time.Duration
	// UntilProtected is the time from the beginning of the trouble until the load on the service was
	// for one second at most half of what was offered. Negative if that did not happen.
	UntilProtected time.Duration
	// UntilBack is the time from the end of the trouble until the start of the first second in which at
	// least 80 % of the calls were good. Negative if that did not happen.
	UntilBack time.Duration
	// Openings is the number of times that guards began to refuse all calls.
	Openings int
	// FalseRefusals counts refusals while the service was not in trouble.
	FalseRefusals int
	// RefusedUnhurried is the number of refused calls among those without a hurried deadline.
	OfferedUnhurried, RefusedUnhurried int
	// Wait is the median time, and Slowest the longest, from the start of a call until its good answer.
	Wait, Slowest time.Duration
	// Crowd is the largest share of all attempts that fell into the same 10 ms.
	Crowd float64
	// Series are the calls of each second by their beginning, the last one of the run included.
	Series []Second
}

// Second is one second of a run.
type Second struct{ Offered, Good, Failed, Refused, Sent int }
