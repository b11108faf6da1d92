package limiter

import (
	"math"
	"time"
)

// Never is the RetryAfter which says that the same request will not be admitted however long one waits.
const Never time.Duration = math.MaxInt64

// Result is what a limiter answers: the five numbers of redis-cell's CL.THROTTLE, typed.
//
// A request for 0 permits is a peek: it changes nothing, and the result tells how
// things stand. It is OK unless permits are owed, somebody waits for some or the limiter is held. A request for more than Limit is refused with RetryAfter Never, and so
// is one for fewer than 0; neither touches the limiter.
type Result struct {
	OK    bool // the permits were taken
	Limit int  // the most permits that can be taken at once

	// Remaining is how many permits could be taken right after this answer.
	Remaining int

	// RetryAfter is how long to wait before the same request can succeed, if nobody
	// else takes permits meanwhile: 0 where OK, Never where it cannot succeed, and
	// otherwise above 0. Waiting that long is always enough. Where a limiter
	// says that it is minimal, waiting a nanosecond less is not. While callers wait
	// in a queue it counts the permits that they want. For a window that may be too
	// short, as it does not know into which windows their requests will fit.
	RetryAfter time.Duration

	// ResetAfter is how long until Remaining is Limit again, if nobody takes permits.
	ResetAfter time.Duration
}
