// Package throttle refuses a share of the calls to an overloaded service, on the client's side.
//
//	var search = throttle.New("search", throttle.Config{})
//
//	hits, err := throttle.Do(ctx, search, func(ctx context.Context) (*Hits, error) {
//		return client.Search(ctx, query)
//	})
//	if errors.Is(err, throttle.ErrRefused) { … } // the call was not made
//
// A breaker (package breaker) is open or closed for all calls. A [Throttle] sends less instead of
// nothing. It is the client-side adaptive throttling of "Site Reliability Engineering" (O'Reilly,
// 2016), chapter 21, Handling Overload. Each call is refused with the probability
//
//	max(0, (requests − K·accepts) / (requests + 1))
//
// where accepts are the successes in the window and requests are all calls in the window with an
// outcome. With Config.CountRefused the requests include the refused calls, as in the book. A
// throttle has no states to recover from: refused and failed calls leave the window.
//
// Because it refuses by chance, two runs differ. One call per second is always allowed, so that a
// service with few callers is found to be well again.
//
// A weir.Gate can have a throttle beside its breaker and its limiter: see weir.Parts.
package throttle
