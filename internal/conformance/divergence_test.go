package conformance_test

// divergence is a way in which ours differs from a reference on purpose.
type divergence string

const (
	clockBack      divergence = "clock goes back"
	windowShape    divergence = "no shape for a window of ours"
	noRate         divergence = "rate, burst or quantity that ours refuses"
	noPace         divergence = "pace that ours refuses"
	centuries      divergence = "owed for decades"
	earlyDeath     divergence = "key dies early"
	idleKey        divergence = "refusal after idling"
	peekWrites     divergence = "a peek is stored"
	floatEdge      divergence = "float at an edge"
	twice          divergence = "cancelled twice"
	oldRate        divergence = "cancelled after a change of the rate"
	lumps          divergence = "credited in lumps"
	extra          divergence = "full funnel keeps an extra"
	overshoot      divergence = "less than one drop of room"
	anew           divergence = "reservation from before a divergence"
	unlimited      divergence = "tokens of an unlimited bucket"
	wholeMicros    divergence = "remaining in whole microseconds"
	noPermit       divergence = "result without a permit"
	backoffCut     divergence = "backoff cut to milliseconds"
	staleTimer     divergence = "timer outlives a reset"
	startBuckets   divergence = "rolling window"
	lateResult     divergence = "result from an earlier state"
	byClock        divergence = "half-open by the clock"
	closedUnproved divergence = "closed for want of a verdict"
	idleTimeout    divergence = "half-open times out without a probe"
	giveUpGrows    divergence = "half-open times out with a backoff"
	handGrows      divergence = "opened by hand with a backoff"
	oneMember      divergence = "one member for all calls of a moment"
	refusedKept    divergence = "refused calls are kept"
	oneWindow      divergence = "all of the rate at once when its window moves"
	oneCursor      divergence = "nothing before its window moves"
)

// divergences is the one table of them: why each is no mismatch.
var divergences = map[divergence]string{
	clockBack:      "a time earlier than one that was given before counts as of the newest bucket",
	windowShape:    "windows of ours are 1 ms to 30 days long, of 1 to 100,000 buckets, none longer than an hour",
	noRate:         "rates of 0 or less, bursts that are no whole number from 1 on and requests for less than nothing make no sense: theirs answers with errors, refuses for ever or gives credit",
	noPace:         "an infinite rate, a cold factor below 1 or infinite and a warm-up below 1 µs are refused by ours; in theirs they make NaN of what is stored",
	centuries:      "where interval × burst or × quantity comes to decades theirs overflows, and refuses everything from then on; ours counts in coarser units than nanoseconds",
	earlyDeath:     "redis keeps keys for whole milliseconds, so theirs forgets up to one of them of what is owed",
	idleKey:        "theirs, refused after an idle time, answers as of the time when it was last used: a reset below 0 and more remaining than the limit",
	peekWrites:     "theirs stores the time of a request for 0, and when the clock goes back behind that it is owed; ours changes nothing",
	floatEdge:      "theirs counts in float64 and lets a nanosecond pass, ours is exact: within 1e-6 of a token, and what comes in two nanoseconds, or within one of the time at which a reservation may act",
	twice:          "theirs credits each Cancel of a reservation, ours the first",
	oldRate:        "theirs reckons what a reservation still owes by times that were promised at another rate, and can give back many times what it took; ours never more than that",
	lumps:          "theirs credits no less than a whole quota at a time, and refuses what the part that it withholds would make up",
	extra:          "theirs, full, does not move its time before a whole quota has leaked, and then credits what there was no room for",
	overshoot:      "theirs lets a drop in where there is room for a part of one, and holds up to one more than its burst",
	anew:           "after a divergence ours begins anew from where theirs stands, and the reservations made until then are theirs alone",
	unlimited:      "where there is no limit, ours has infinitely many tokens and theirs a burst of them",
	wholeMicros:    "theirs divides whole microseconds to find what remains: off where an interval is not a whole number of them, and 2^63-1 where it is less than one",
	noPermit:       "theirs counts results of calls that it never let through, or twice; ours counts a permit once",
	backoffCut:     "theirs cuts each wait to whole milliseconds before it makes the next of it, so that 1 ms never grows by 1.5",
	staleTimer:     "theirs leaves the timer of a state running when it is reset, and it then ends a later state",
	startBuckets:   "theirs books a call in the bucket in which it began, drops it when that is gone, and forgets failures in a row as buckets leave; with ours a call counts when it ends, and failures in a row do not age",
	lateResult:     "theirs credits a result to whatever state it is in when it comes, ours drops and counts those of calls that an earlier state let through",
	byClock:        "ours is half-open as soon as its cooldown is over, theirs from the first call after that on, unless a timer makes it so",
	closedUnproved: "theirs can be told to close when probes give no verdict; ours opens again",
	idleTimeout:    "with a timer for half-open, theirs opens again while nobody calls, so that a caller a minute may never pass; the half-open time of ours runs from the first probe",
	giveUpGrows:    "theirs lengthens the wait when half-open gave no verdict; ours only when probes failed",
	oneMember:      "theirs keeps one member of a sorted set for all calls of one time, and so lets through more than its limit; ours refuses",
	refusedKept:    "theirs enters calls that it refuses, so that a caller who keeps asking stays refused; ours lets through what fits",
	oneWindow:      "theirs has all of its rate again when its one window moves, and one member for all requests of one size, and so lets through more than its rate; ours refuses",
	oneCursor:      "theirs gives nothing back before its one window is over; ours lets through what fits",
	handGrows:      "theirs lengthens the next wait for each opening by hand; ours only when probes failed",
}
