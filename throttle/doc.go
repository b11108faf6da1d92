// Package throttle refuses a share of the calls to an overloaded service, in the client.
//
//	var search = throttle.New("search", throttle.Config{})
//
//	hits, err := throttle.Do(ctx, search, func(ctx context.Context) (*Hits, error) {
//		return client.Search(ctx, query)
//	})
//	if errors.Is(err, throttle.ErrRefused) { … } // the call was not made
//
// A breaker (package breaker) lets all calls through or none. A [Throttle] lets a share through. A
// weir.Gate can have a throttle beside its breaker and its limiter: see weir.Parts.
//
// # Config
//
//	Config        Default           Change it
//	K             2                 to refuse calls sooner (less) or later (more)
//	MinCalls      20                if the share of accepted calls among 20 says too little
//	CountRefused  false             if a service that is down should get hardly any call
//	MaxRefusal    0.99              to send more calls to a service that is down
//	Window        10s               to react faster, or to judge more calls
//	Classify      every error is    if some errors do not mean an overload
//	              a failure
//
// # Flow
//
// A throttle implements client-side adaptive throttling, as described in "Site Reliability
// Engineering" (O'Reilly, 2016), chapter 21, Handling Overload. It refuses each call with the
// probability
//
//	max(0, (requests − K·accepts) / (requests + 1))
//
// where accepts are the successes in the window, and requests are all successes and failures in the
// window. With Config.CountRefused the requests include the refused calls, as in the book.
//
//	call ──► refused with that probability? ──► service ──► success: requests + 1, accepts + 1
//	               │ yes                            └─────► failure: requests + 1
//	               ▼
//	         not sent; counts only with CountRefused: requests + 1
//
// # Guarantees
//
//   - A throttle has no states: refused and failed calls count until they leave the window.
//   - Refusals are random, so two runs differ.
//   - One call per second is always allowed, so that the throttle notices when a service with few
//     callers has recovered.
//   - A package variable can be used in bubbles of testing/synctest, in which the clock begins
//     anew. A throttle whose clock is another one than before starts again as new, but its totals
//     stay.
package throttle
