// Package inflight bounds the number of calls in flight. Such a bound is also called a bulkhead: a
// service that answers slowly then occupies only a part of the program.
//
//	var reports = inflight.New(inflight.Config{Limit: 50, MaxWaiters: 100, Name: "reports"})
//
//	err := reports.Run(ctx, func(ctx context.Context) error {
//		return client.Report(ctx, query)
//	})
//	if errors.Is(err, inflight.ErrFull) { … } // the call was not made
//
// Each call occupies a slot until it has ended. If there is none, a caller waits for one, in order of
// arrival, or does without: see [Limiter.TryAcquire]. A call that is not a function call acquires its
// slot and says when it has ended:
//
//	slot, err := reports.Acquire(ctx)
//	if err != nil {
//		return err
//	}
//	defer func() { slot.Done(ctx, err) }()
//
// A bound on calls in flight follows the latency of the service, which a rate limit does not: L slots
// allow L divided by the latency calls per second. The bound of a healthy service is about its calls
// per second times its latency in seconds (Little's law), plus a reserve.
//
// The error of a refused call is a *[FullError] that matches [ErrFull] and weir.ErrRefused. It says
// when a retry is worthwhile, by the rate at which slots are released.
//
// A server that is asked for more than it can do chooses whom it answers: see [Queue] for priorities,
// tenants and a bound on the time spent waiting, and weirhttp.Shed for requests.
//
// A limiter takes about 200 bytes, 500 more once a caller has waited, and 250 per waiter. Acquiring and releasing a slot takes two
// atomic operations, no lock and no clock. Limiters start no goroutines. A gate of package weir has a
// bound too: see weir.Config.
package inflight
