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
// With Config.Adaptive the limiter finds the limit. It is for a service that can be overloaded or
// lose capacity, while callers allow a limited time. It refuses a call only on evidence that
// refusing helps:
//
//   - In front of an overloaded service all calls wait in one queue, so even those that need little
//     work are slow. A fast success contradicts an overload, however many other calls are slow,
//     lost or long. A success is fast within twice the median, or within an eighth of the time that
//     its caller allowed: that is the deadline of its context, or a second without one.
//   - Three kinds of calls are evidence of an overload. They fail after all of the time that their
//     caller allowed, or take more than half of it and eight times the median, or the service says
//     that it is overloaded. It says so with window.Overloaded, the outcome of HTTP's status 429
//     and of gRPC's ResourceExhausted. More than two late failures, or four slow calls, must come
//     with each fast one.
//   - The calls in flight must be expected to take too long as well, by Little's law. The limit
//     then lets in what the service answers within a quarter of the time that callers allow, or
//     within four times the median if that is longer.
//   - Each further cut needs evidence of its own, from calls that began after the last one. Each
//     success in good time raises the limit by one call. A limit that has not been reached for two
//     seconds bounds nothing any more.
//   - Calls that began long ago, such as streams, are left out: the limit leaves room for them. See
//     [Slot.Answered].
//   - If calls are as slow as before although much fewer are in flight, they do not wait for each
//     other. The bounding ends, and the limiter learns anew what is usual.
//   - If no call has passed for twice as long as callers allow, because calls that never end hold
//     all slots, one more passes.
//
// The median is learned while nothing is wrong, and first from 32 calls that begin one after the
// other. Until nearly all of them have ended, nothing is refused. The limiter learns nothing from
// errors that come early, or from deadlines that are shorter than twice the median: a breaker
// handles those. A call that its caller cancels is a late failure if it was slow and no other call
// has succeeded since it began. [Limiter.Explain] says why calls are bounded. See adaptation.go for
// the sources.
//
// What it cannot see: the queue of the service. It does not help if one of several hosts is
// overloaded and the others are well, because the others answer fast. If one of three hosts hangs,
// a third of the calls fail; give each host a limiter of its own. In the same way, short calls hide
// that long ones wait; give long calls a limiter of their own. A stream holds its slot until it
// ends, so 60 open streams hold 60 slots of a fixed Limit; give streams a limiter of their own too.
// In an overload that has begun before the process, it takes the first calls for usual. A short
// overload that a long queue would have absorbed costs some calls.
//
// If callers wait in a [Queue] with a Target, they should not wait in the service as well. So a
// call is slow from twice the Target on, if that is more than eight times the median. Tests with
// ten simulated servers, calls of 20 ms and a Target of 20 ms keep these bounds:
//   - Under 1.5 to 10 times the load that the servers can take, at least 90 % of what they can do
//     is done from 2 s on. An answered call takes at most 150 ms in the median.
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
// A limiter needs about 260 bytes, 650 more if it adapts, and 660 more after the first wait. A name
// needs 410 bytes, 2,200 more after the first wait, and 1,600 more when its metrics are first read.
// A waiter needs 320 bytes beside its goroutine, 370 more if the queue has a Target, and 160 more
// if it is the first of its tenant. Acquiring and releasing a slot takes two atomic operations, no
// lock and no clock if the limit is fixed. Limiters start no goroutines. A gate of package weir has
// a bound too: see weir.Config.
package inflight
