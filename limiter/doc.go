// Package limiter decides whether something may be done now.
//
// A limiter is asked for permits. It hands them out or refuses, and says when asking again
// is worth while:
//
//	var signup = limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerMinute(30), Burst: 5})
//
//	if r := signup.Take(1); !r.OK {
//		return fmt.Errorf("too many, try again in %s", r.RetryAfter)
//	}
//
// What is over the limit can be refused (Take), made to wait in the order of arrival (Wait), or
// diverted (weir.DoOr). Wait takes no longer than the deadline of its context allows, and returns
// at once if the tokens cannot be there in time:
//
//	ctx, cancel := context.WithTimeout(ctx, time.Second)
//	defer cancel()
//	if err := signup.Wait(ctx, 1); err != nil {
//		return err
//	}
//
// A [Group] has one limit per key, such as a user:
//
//	var users = limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerSecond(5), Burst: 10})
//
//	if r := users.Get(id).Take(1); !r.OK { … }
//
// # Which limiter when
//
// L is the limit and W its span; for a token bucket, L is its burst and R what its rate yields in a span.
//
//	I want to …                                  use            most in any W           memory       a decision
//	hold a rate and allow bursts                 TokenBucket    L + R                   500 B        lock-free
//	say "100 a minute" and be cheap about it     FixedWindow    2 L, around an edge     250 B        a mutex
//	never exceed L in any W                      SlidingWindow  L; returns W/N later    16 B a part  a mutex
//	never exceed L in any W, and use all of it   SlidingLog     L                       32 B an entry, at most L of them
//	keep several limits at once                  All            the least of them       theirs       theirs
//	let calls go one by one, and queue some      LeakyBucket    R + 1                   200 B a waiter
//	pace as Guava does, paying later             package guava  R + a second's worth    200 B a waiter
//	bound calls in flight                        Concurrency    L at once               200 B a waiter
//	limit each user, address or action           Group          as TokenBucket          45 B a key in use, and the key
//	see what a limit does, or would do           a Name in any of their configurations; Named for other limiters
//
// # Time
//
// Limiters take their time from the monotonic clock, so steps of the wall clock do not touch
// them; the twins ending in At take a given time instead, for replays and simulations. Times that
// go back may be refused more than they should; they never add permits. A limiter begins at the first time that it is given,
// which may be up to 36 years before it was made: a variable of a package can be used in a bubble of testing/synctest.
//
// # Waiting
//
// Those who wait stand in a queue, and the first is served before the others are looked at. Permits are
// charged when a caller is served, not when it comes: whoever gives up leaves no debt, and a change of the rate
// holds for all who still wait. A wait that cannot succeed is refused at once. The goroutines are
// those of the callers; no limiter starts one.
//
// Refusals are of type *[LimitedError] and match [ErrLimited] and weir.ErrRefused. Take does not
// allocate, unless a [SlidingLog] grows or a [Group] meets a new key. Only a limiter with a name keeps statistics.
package limiter
