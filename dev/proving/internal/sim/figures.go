package sim

import "time"

// Figures are the measured results of one run. A call is one request of a user, with all its
// attempts. An attempt is a try that the guard let through to the service.
type Figures struct {
	Offered, Good, Failed, Refused int // calls, by their end
	// OfferedMeanwhile and the next three count the calls that began while the service was in
	// trouble.
	OfferedMeanwhile, GoodMeanwhile, FailedMeanwhile, RefusedMeanwhile int
	// GoodAfter and OfferedAfter count the calls that began after the trouble.
	OfferedAfter, GoodAfter int
	// Sent counts the attempts that reached the service before the end of the run. SentMeanwhile
	// counts the attempts that reached the service while it was in trouble.
	Sent, SentMeanwhile int
	// Answered, Erroneous and Abandoned are the attempts sent, by their end for the caller: a good
	// answer, an error of the service, or none in time.
	Answered, Erroneous, Abandoned int
	// BadSentBeforeOpen is the number of attempts that failed before the first opening, from the
	// beginning of the trouble.
	BadSentBeforeOpen int
	// Wasted is the work, in server time, on attempts whose caller had gone when it was done.
	// Worked is all work.
	Wasted, Worked time.Duration
	// UntilProtected is the time from the beginning of the trouble until the start of the first
	// second in which at most half as many attempts were sent as calls were offered, to 0.1 s.
	// Negative if that did not happen in the trouble.
	UntilProtected time.Duration
	// UntilBack is the time from the end of the trouble until the start of the first second in
	// which at least 80 % of the calls that began were good, to 0.1 s. Negative if that did not
	// happen.
	UntilBack time.Duration
	// Openings is the number of times that guards began to refuse all calls. OpeningsMeanwhile
	// counts only the openings during the trouble.
	Openings, OpeningsMeanwhile int
	// FalseRefusals counts the attempts that guards refused while the service was not in trouble.
	FalseRefusals int
	// OfferedUnhurried is the number of calls without a hurried deadline. RefusedUnhurried is how
	// many of them were refused.
	OfferedUnhurried, RefusedUnhurried int
	// Wait is the median time, and Slowest the longest, from the start of a call until its good
	// answer.
	Wait, Slowest time.Duration
	// Crowd is the largest share of all attempts sent that fell into the same 10 ms.
	Crowd float64
	// Series are the calls of each second of the simulation, by their beginning, and the attempts
	// of each second. Those of the warmup are 0. Their sums are the figures above.
	Series []Second
}

// Second is one second of a run.
type Second struct{ Offered, Good, Failed, Refused, Sent int }
