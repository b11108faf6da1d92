package conformance_test

// divergence is an intended difference between weir and a reference.
type divergence string

const (
	clockBack            divergence = "clock goes back"
	refusedWindow        divergence = "window that weir refuses"
	refusedRate          divergence = "rate, burst or quantity that weir refuses"
	refusedPace          divergence = "pace that weir refuses"
	debtOfDecades        divergence = "debt of decades"
	earlyExpiry          divergence = "key expires early"
	idleKey              divergence = "refusal after an idle time"
	peekWrites           divergence = "a peek is stored"
	floatEdge            divergence = "float at an edge"
	cancelledTwice       divergence = "cancelled twice"
	cancelledAfterChange divergence = "cancelled after a change of the rate"
	wholeQuotas          divergence = "credited in whole quotas"
	excessCredit         divergence = "full funnel credits too much"
	partialRoom          divergence = "less than one drop of room"
	earlierReservation   divergence = "reservation from before a divergence"
	unlimitedTokens      divergence = "tokens of an unlimited bucket"
	wholeMicros          divergence = "remaining in whole microseconds"
	resultWithoutPermit  divergence = "result without a permit"
	backoffCut           divergence = "backoff cut to milliseconds"
	staleTimer           divergence = "timer outlives a reset"
	bucketOfStart        divergence = "rolling window"
	lateResult           divergence = "result from an earlier state"
	halfOpenByClock      divergence = "half-open by the clock"
	closedWithoutVerdict divergence = "closed without a verdict"
	idleTimeout          divergence = "half-open times out without a probe"
	halfOpenBackoff      divergence = "half-open times out with a backoff"
	manualBackoff        divergence = "opened manually with a backoff"
	sharedMember         divergence = "one member for all calls at one time"
	refusedKept          divergence = "refused calls are kept"
	restoredAtOnce       divergence = "all of the rate at once when the window moves"
	nothingRestored      divergence = "nothing before the window moves"
)

// divergences says why each divergence is allowed.
var divergences = map[divergence]string{
	clockBack:            "a time earlier than one that was given before counts as of the newest bucket",
	refusedWindow:        "a window of weir is 1 ms to 30 days long and has 1 to 100,000 buckets of at most an hour",
	refusedRate:          "a rate of 0 or less, a burst that is no integer above 0 and a negative request make no sense: the reference returns errors, refuses forever or gives credit",
	refusedPace:          "weir refuses an infinite rate, a cold factor below 1 or infinite and a warm-up below 1 µs; in the reference the stored permits become NaN",
	debtOfDecades:        "if interval × burst or × quantity is decades, the reference overflows and refuses everything from then on; weir counts in units coarser than nanoseconds",
	earlyExpiry:          "redis keeps keys for whole milliseconds, so the reference forgets up to a millisecond of debt",
	idleKey:              "when the reference refuses after an idle time, it answers as of its last use: a negative reset and more remaining than the limit",
	peekWrites:           "the reference stores the time of a request for 0, which becomes a debt if the clock goes back before it; weir changes nothing",
	floatEdge:            "the reference counts in float64 and tolerates a nanosecond, weir is exact: differences within 1e-6 of a token, of calls two nanoseconds apart, or within a nanosecond of the time at which a reservation may act",
	cancelledTwice:       "the reference credits each Cancel of a reservation, weir only the first",
	cancelledAfterChange: "after a change of the rate, the reference computes what a reservation still owes from times at the old rate, and can give back many times what it took; weir never gives back more",
	wholeQuotas:          "the reference credits only whole quotas, and so refuses requests that the withheld part would cover",
	excessCredit:         "a full reference does not move its time until a whole quota has leaked, and then credits more than there was room for",
	partialRoom:          "the reference allows a drop if there is room for a part of it, and so holds up to one more than its burst",
	earlierReservation:   "after a divergence a new bucket takes over the reference's level, but not its earlier reservations",
	unlimitedTokens:      "without a limit, weir has infinitely many tokens and the reference has a burst of them",
	wholeMicros:          "the reference divides whole microseconds to compute what remains: wrong if the interval is not a multiple of one, and 2^63-1 if it is less",
	resultWithoutPermit:  "the reference counts results of calls that it never allowed, and counts some twice; weir counts a permit once",
	backoffCut:           "the reference truncates each wait to whole milliseconds before it computes the next, so 1 ms times 1.5 never grows",
	staleTimer:           "the reference keeps the timer of a state running after a reset, and it then ends a later state",
	bucketOfStart:        "the reference counts a call in the bucket in which it began, drops it if that has left the window, and forgets consecutive failures as buckets leave. In weir a call counts when it ends, and consecutive failures do not age",
	lateResult:           "the reference counts a result in the state at that time; weir counts it as late if an earlier state allowed the call",
	halfOpenByClock:      "weir is half-open as soon as the cooldown is over, the reference from the first call after that, unless a timer changes it",
	closedWithoutVerdict: "the reference can be configured to close if the probes give no verdict; weir opens again",
	idleTimeout:          "with a timer for half-open, the reference opens again if there are no calls, so one call per minute may never pass; in weir the half-open time runs from the first probe",
	halfOpenBackoff:      "the reference lengthens the wait if half-open gave no verdict; weir only if probes failed",
	sharedMember:         "the reference keeps one member of a sorted set for all calls at one time, and so allows more than its limit; weir refuses",
	refusedKept:          "the reference records calls that it refuses, so a caller that keeps asking stays refused; weir allows what fits",
	restoredAtOnce:       "the reference restores all of its rate when its one window moves, and keeps one member for all requests of one size, and so allows more than its rate; weir refuses",
	nothingRestored:      "the reference gives nothing back before its one window is over; weir allows what fits",
	manualBackoff:        "the reference lengthens the next wait after each manual opening; weir only if probes failed",
}
