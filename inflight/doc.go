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
// Each call occupies a slot until it has ended. If no slot is free, a caller waits for one in order
// of arrival, or returns at once without one: see [Limiter.TryAcquire]. A call that is not a
// function call acquires its slot and releases it at its end:
//
//	slot, err := reports.Acquire(ctx)
//	if err != nil {
//		return err
//	}
//	defer func() { slot.Done(ctx, err) }()
//
// A bound on calls in flight follows the latency of the service: L slots allow L divided by the
// latency calls per second. A rate limit does not follow the latency. The bound of a healthy
// service is about its calls per second times its latency in seconds (Little's law), plus a
// reserve.
//
// # An adaptive limit
//
// With Config.Adaptive the limiter finds the limit. It refuses nothing as long as calls take about
// as long as usual. It bounds the calls only if most recent calls took about eight times as long as
// usual, or if calls failed after more than twice the usual time. In both cases the calls in flight
// must be expected to take long too. The limit is then computed by Little's law, so that calls take
// about four times as long as usual. The queue of the service is then just long enough to keep the
// service busy. While calls fail late, the limit is halved, down to one call. When the limit has
// not been reached for two seconds, no call is refused any more.
//
// The usual latency is learned while nothing is wrong. Trials detect a service that has become
// slower for reasons other than load: if the latency stays the same when the limit is doubled, it
// is the usual latency from then on. The limiter learns nothing from errors that come early, or
// from deadlines that are shorter than the usual latency: a breaker handles those. A call that its
// caller cancels is a late failure if it took eight times as long as usual and no other call has
// succeeded since it began. Otherwise the limiter learns nothing from it either. The first 20 calls
// only serve to learn the usual latency. See adaptation.go for the sources.
//
// If callers wait in a [Queue] with a Target, a limit that is reached delays callers at first and
// refuses none. So the limiter does not wait for slow or failed calls before it bounds the calls.
// The limit begins at 20, and is raised as long as calls take less than about twice as long as
// usual. Tests with ten simulated servers, calls of 20 ms and a Target of 20 ms keep these bounds:
//   - Under 1.5 to 10 times the load that the servers can take, at least 90 % of what they can do
//     is done from 2 s on. An answered call takes at most 80 ms in the median, and the limit is
//     between 5 and 50.
//   - One second after the capacity was halved, at least 90 % of the rest is used. One second after
//     it was restored, nothing is refused.
//   - Nothing is refused at 85 % of what the servers can take.
//
// docs/accuracy.md has the bounds without a queue, and more bounds with a queue.
//
// The error of a refused call is a *[FullError] that matches [ErrFull] and weir.ErrRefused. It says
// when a retry is worthwhile, estimated from the rate at which slots are released and from the
// waiters that come first.
//
// An overloaded server can choose which callers it answers: see [Queue] for priorities, tenants and
// a bound on the time spent waiting, and weirhttp.Shed for requests.
//
// A limiter needs about 260 bytes, 550 more if it adapts, and 660 more after the first wait. A name
// needs 2,000 bytes, and 2,200 more after the first wait. A waiter needs 320 bytes beside its
// goroutine, 370 more if the queue has a Target, and 160 more if it is the first of its tenant.
// Acquiring and releasing a slot takes two atomic operations, no lock and no clock if the limit is
// fixed. Limiters start no goroutines. A gate of package weir has a bound too: see weir.Config.
package inflight
