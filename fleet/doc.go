// Package fleet enforces limits and counts calls for many machines together, on Redis 6 or later,
// or on Valkey, stand-alone or a Cluster.
//
//	client := redis.NewClient(&redis.Options{Addr: "redis:6379", ContextTimeoutEnabled: true})
//	link, err := fleet.Connect(ctx, "limits", client, fleet.LinkConfig{})
//	…
//	users := fleet.NewLimiter("users", fleet.Config{
//		Link:     link,
//		Limits:   []fleet.Limit{fleet.TokenBucket{Rate: limiter.PerSecond(100), Burst: 50}},
//		OnOutage: fleet.FailLocal, Share: 1.0 / 3,
//	})
//
//	r, err := users.Take(ctx, "user:42", 1)
//	if err != nil {
//		return err // no decision
//	}
//	if !r.OK {
//		return fmt.Errorf("too many requests, try again in %s", r.RetryAfter)
//	}
//
// One script in Redis makes each decision, by the clock of Redis. The clocks of the machines do not
// matter, and simultaneous requests are decided one after the other. A key takes no space before
// its first use, and Redis deletes it once it is idle.
//
// If the clock of Redis goes back, tokens that were taken before count until the clock has caught
// up, but no longer than a bucket takes to fill, or two windows. (Package rediscell is an
// exception: the format of redis-cell does not contain the limit, so this bound is not known. Reset
// such keys.) If the clock goes forward, tokens return early.
//
// # Which limit to use
//
// L is the limit and W its window. For a TokenBucket, L is its burst, and R is the number of tokens
// that its rate adds in W.
//
//	You want to …                                use              most in any W           Redis memory per key
//	hold a rate and allow bursts                 TokenBucket      L + R                   200 bytes
//	say "100 per minute" at low cost             FixedWindow      2 L, around an edge     200 bytes
//	never exceed L in any W                      SlidingWindow    L; returns W/N later    200 bytes, and 20 per bucket
//	never exceed L in any W, and use all of it   SlidingLog       L                       200 bytes, and 130 per request, or 45 up to 120
//	replace redis-cell, or share its keys        rediscell.Limit  L + R                   200 bytes
//	combine several limits                       several Limits   the least of them       the sum of them
//	limit many keys together                     Shared           that of its limit       that of its limit, per By
//	let a breaker see the calls of all machines  Calls
//
// The bounds hold for all machines together, accurate to 2µs. Leases allow more: see
// [Config].MaxLease. An outage with FailLocal also allows more: see [Config].Share. If Redis loses
// data, because a key is evicted or a replica takes over before it has received everything, the
// lost tokens are allowed again.
//
// A [Shared] limit applies to all keys together, or to groups of keys:
//
//	Limits: []fleet.Limit{
//		fleet.TokenBucket{Rate: limiter.PerSecond(10), Burst: 20},           // each user
//		fleet.Shared{Limit: fleet.TokenBucket{Rate: limiter.PerSecond(1000)}}, // all users
//	}
//
// [Limits] and [OnOutage] have a text form, so they can be read from a file or the environment.
//
// # When Redis is unavailable
//
// [Config].OnOutage is the policy that decides while Redis cannot be reached, is too slow, loading,
// read-only, full, or unsure which of its nodes has the key. FailOpen allows, FailClosed refuses,
// FailLocal limits to this node's share, and FailError returns an error. There is no default.
// [Result].From says which part decided.
//
//	Take ──► deny cache ──► lease ──► breaker ──► Redis, for up to LinkConfig.Timeout
//	                                     │          │
//	                                     └──────────┴──► OnOutage: FailOpen, FailClosed, FailLocal or FailError
//
// A breaker protects each server: a stand-alone Redis, for all limiters of a [Link], or each master
// of a Cluster, so that an unavailable master affects only the limits of its own keys. A breaker
// opens after five failed round trips. Until then, all callers of a failed round trip wait for it,
// up to the Timeout. Once the breaker is open, about one decision per second checks whether the
// server is back.
//
// A request whose reply was lost is never sent again, because Redis may have decided it. A request
// that a Cluster rejects while it moves a slot is sent again until the Timeout has passed.
//
// A round trip counts as failed only because of what Redis does within the Timeout of the link. A
// caller that gives up, or has a shorter deadline, does not count as a failure. Such a caller
// returns when its context ends. If it was sending a batch of commands, a goroutine waits for the
// reply, up to the Timeout.
//
// Set cluster-require-full-coverage to no in a Cluster. Otherwise one unavailable master makes all
// masters unavailable.
//
// # Keys
//
// A Redis key consists of [LinkConfig].Prefix, the limiter's name and, between braces, the user's
// key. All Redis keys of a decision are therefore in one slot of a Cluster, except those of a
// [Shared] limit. In a user's key of up to 256 bytes, % and } are replaced by %25 and %7D; a longer
// key is replaced by its SHA-256. Redis is never scanned.
//
// Limiters with the same prefix, name and key share a limit. Limiters with different limits need
// different names, except those of package rediscell. You may change a rate or a limit: tokens
// taken before still count, unless the Window of a FixedWindow becomes shorter.
//
// Strangers who can choose keys can choose many keys in the same slot. If that matters, use an HMAC
// of the key.
//
// # Rights
//
// A user of a stand-alone Redis needs these rights if the prefix is "weir:". The last line is only
// for Calls. A user of a Cluster also needs +cluster|slots and +command.
//
//	ACL SETUSER limits on >secret ~weir:* +info +command|info +eval +evalsha +time +get +set +del +unlink +pttl
//	+pexpire +zadd +zcard +zrange +zrangebyscore +zrevrangebyscore +zrem +zremrangebyrank
//	+hmget +hset +hdel +hscan +exists
//
// A limit of package rediscell also needs +cl.throttle if the server has redis-cell. Without +info
// and +command|info everything works, but a server that is too old, or has redis-cell, is not
// detected.
//
// # Errors
//
// An error of a limiter means that there is no decision. A refusal is not an error, but a Result
// that is not OK. Errors of Redis have the type *StoreError and match [ErrUnavailable],
// [ErrForeign] or [ErrServer]. Their text contains neither addresses nor credentials. Wait returns
// a *limiter.LimitedError if waiting is pointless.
package fleet
