// Package guava provides the two rate limiters of Guava, with the same waits to the microsecond.
// Use it for a service that was moved from Java to Go and must keep its pace. Use it also if
// callers are to pay for a call after the call instead of before it.
//
//	var disk = guava.NewSmoothBursty(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(4)})
//
//	if err := disk.Wait(ctx, pages); err != nil { // a first request goes at once, however large pages is
//		return err
//	}
//
// # Config
//
//	SmoothBurstyConfig  Default   Change it
//	Rate                required  to the pace of the service
//	MaxBurst            1s        to allow more or fewer permits at once after an idle time
//	MaxWaiters          no bound  to refuse callers instead of letting the queue grow
//
// [SmoothWarmingUpConfig] is that of a service that becomes cold.
//
// # Flow
//
// The cost of a request is a time. A request of any size goes at once if earlier requests are paid
// for, which means that the time they cost has passed. The next request waits for the cost of this
// one:
//
//	Wait(8) passes                     Wait(1) passes    Wait(1) passes
//	├───────── 8 permits: 2s ──────────┼─ 1: 250ms ──────┼─ 1: 250ms ─►
//
// Unused permits are stored for a while. Stored permits of [NewSmoothBursty] are free. Those of
// [NewSmoothWarmingUp] cost more than fresh ones, because the service behind the limiter has become
// cold.
//
// # Guarantees
//
//   - A [RateLimiter] implements limiter.TimedLimiter and limiter.WaitLimiter: waiters are served
//     in order of arrival, are charged when they are served, and get the same errors. To name or
//     combine them, use limiter.NewJoint.
//   - Time is counted in microseconds, as in Guava, so intervals are cut to whole microseconds:
//     rates drift a little, and single permits at more than a million per second cost nothing. For
//     an exact limit, use a limiter.TokenBucket.
package guava
