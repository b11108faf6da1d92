// Package throttle refuses a share of the calls to an overloaded service, in the client.
//
//	var search = throttle.New("search", throttle.Config{})
//
//	hits, err := throttle.Do(ctx, search, func(ctx context.Context) (*Hits, error) {
//		return client.Search(ctx, query)
//	})
//	if errors.Is(err, throttle.ErrRefused) { … } // the call was not made
//
// A breaker (package breaker) lets all calls through or none. A [Throttle] lets a share through. It
// implements client-side adaptive throttling, as described in "Site Reliability Engineering"
// (O'Reilly, 2016), chapter 21, Handling Overload. It refuses each call with the probability
//
//	max(0, (requests − K·accepts) / (requests + 1))
//
// where accepts are the successes in the window, and requests are all successes and failures in the
// window. With Config.CountRefused the requests include the refused calls, as in the book. A
// throttle has no states: refused and failed calls count until they leave the window.
//
// Refusals are random, so two runs differ. One call per second is always allowed, so that the
// throttle notices when a service with few callers has recovered.
//
// A package variable can be used in bubbles of testing/synctest, in which the clock begins anew. A
// throttle whose clock is another one than before starts again as new, but its totals stay.
//
// A weir.Gate can have a throttle beside its breaker and its limiter: see weir.Parts.
package throttle
