// Package breaker stops calls to a service that fails, and finds out by itself
// when it is well again.
//
//	var users = breaker.New("users", breaker.Config{})
//
//	user, err := breaker.Do(ctx, users, func(ctx context.Context) (*User, error) {
//		return client.Get(ctx, id)
//	})
//	if errors.Is(err, breaker.ErrOpen) { … } // refused: the call was not made
//
// A breaker counts what its calls come to in a moving window. Where enough of them
// failed it opens, and refuses all calls for a while; then it lets a few through as
// probes, and closes or opens again by their results:
//
//	         failure rate reached              cooldown over
//	Closed ───────────────────────► Open ───────────────────────► HalfOpen
//	   ▲                              ▲                            │    │
//	   │                              └────────────────────────────┘    │
//	   │                                  probes failed                 │
//	   └────────────────────────────────────────────────────────────────┘
//	                              probes succeeded
//
// Besides the failure rate it may open on the rate of slow calls, on calls that hang,
// on failures in a row, on a rule of yours, and on counts that are shared by a fleet: see
// Config. By hand it is opened by OpenFor, closed by Reset, given other rules by
// Reconfigure; Force puts an override over it, under which its state is kept until
// Release. In the state Shadow it lets everything through and counts what a breaker of the same
// config, closed when Shadow began, would have done: Stats counts the calls that it would
// have refused and the times that it would have opened. The results of calls that it would
// have refused are not judged, since it would not have seen them.
//
// A [Group] has a breaker for each key, in bounded memory, that may be kept for any time.
// Package throttle sends less to an overloaded service, instead of nothing.
//
// What can be relied on:
//
//   - A rate is reached when it is equal to the limit, compared in whole numbers,
//     and nothing is judged below Config.MinCalls. The window moves by one bucket at a
//     time: it covers between N−1 and N buckets of N.
//   - At most Config.Probes calls are out while it is half-open. One that never
//     reports (a panic, a hang, a forgotten permit) wedges nothing.
//   - A result counts for the state that let the call through. One that comes later
//     changes nothing, and is counted as late.
//   - After it has closed, what failed before does not count against it.
//   - A panic is a failure and goes on up untouched. A call that its caller cancelled is no
//     evidence, unless it succeeded; neither is one that an inner breaker or limiter refused.
//   - A call through a closed breaker costs one reading of the clock, two where
//     SlowCall, Latency or Active is set, and a refusal one; neither allocates. No
//     goroutine and no timer is ever started.
package breaker
