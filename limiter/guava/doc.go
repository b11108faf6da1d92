// Package guava has the two rate limiters of Guava, equal to them to the microsecond: for a service that comes from Java and
// must keep its pace, and for callers that are to pay after the call rather than before it.
//
//	var disk = guava.NewSmoothBursty(guava.SmoothBurstyConfig{Rate: limiter.PerSecond(4)})
//
//	if err := disk.Wait(ctx, pages); err != nil { // goes at once if nothing is owed, whatever pages is
//		return err
//	}
//
// A request of any size goes at once if nothing is owed; the next request waits for what it costs. Permits that nobody
// takes are stored for a while: those of a [SmoothBursty] are free, those of a [SmoothWarmingUp] cost more than fresh ones,
// because the service behind has become cold.
//
// Both are limiters like those of package limiter: callers wait in order of arrival, owe nothing until they are served, and
// get the same errors. They can be named (limiter.NewNamed), joined (limiter.All) and used in a gate.
//
// Time is counted in microseconds, as in Guava, so an interval is cut to whole microseconds: rates drift a little, and single
// permits at more than a million per second cost nothing. For an exact limit use a limiter.TokenBucket.
package guava
