// Package limiter decides whether something may be done now.
//
// A limiter is asked for permits. It hands them out or refuses, and says when asking again
// is worth while:
//
//	var signup = limiter.NewTokenBucket(limiter.Config{Rate: limiter.PerMinute(30), Burst: 5})
//
//	if r := signup.Take(1); !r.OK {
//		return fmt.Errorf("too many, try again in %s", r.RetryAfter)
//	}
//
// What is over the limit can be refused (Take), made to wait in the order of arrival (Wait), or
// diverted (weir.DoOr).
//
// Limiters take their time from the monotonic clock, so steps of the wall clock do not touch
// them; the twins ending in At take a given time instead, for replays and simulations. None of them
// starts a goroutine, and none counts anything for statistics by itself.
package limiter
