// Package fleet keeps the limits and the counts of many machines together, on Redis 6 or later, or Valkey, stand-alone or a Cluster.
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
//		return fmt.Errorf("too many, try again in %s", r.RetryAfter)
//	}
//
// A decision is one script in Redis, by the clock of Redis: the clocks of the machines do not matter, and two requests at once are
// decided one after the other. If the clock of Redis goes back, what was taken counts until it has caught up, but no longer than a
// bucket takes to fill, or two windows. (The limit of package rediscell has redis-cell's format, which does not tell for how long: reset such keys.) If the
// clock goes forward, what it steps over has come back. A key costs nothing before it is used, and is gone from Redis once it is idle.
//
// # Which limit when
//
// L is the limit and W its span; for a TokenBucket, L is its burst and R what its rate yields in a span.
//
//	I want to …                                  use            most in any W           in Redis, a key
//	hold a rate and allow bursts                 TokenBucket    L + R                   250 bytes
//	say "100 a minute" and be cheap about it     FixedWindow    2 L, around an edge     250 bytes
//	never exceed L in any W                      SlidingWindow  L; returns W/N later    250 bytes, and 20 a part
//	never exceed L in any W, and use all of it   SlidingLog     L                       250 bytes, and 130 a request
//	replace redis-cell, or share its keys        rediscell.Limit  L + R                  250 bytes
//	keep several limits at once                  several        the least of them       theirs
//	limit many keys together                     Shared         that of its limit       that of its limit, for each By
//	have a breaker judge what all machines see   Calls
//
// The bounds are those of all machines together, to two microseconds. Leases ([Config].MaxLease) add to them what its comment
// says, an outage under FailLocal what [Config].Share says, and so does a Redis that forgets: what a replica had not been told before it took over, and what was evicted, is admitted
// a second time.
//
// A limit for all keys, or for groups of them, stands beside the others as a [Shared]:
//
//	Limits: []fleet.Limit{
//		fleet.TokenBucket{Rate: limiter.PerSecond(10), Burst: 20},           // each user
//		fleet.Shared{Limit: fleet.TokenBucket{Rate: limiter.PerSecond(1000)}}, // everybody
//	}
//
// [Limits] and [OnOutage] read and write text, so that they can come from a file or the environment.
//
// # When Redis is unavailable
//
// [Config].OnOutage says who decides while Redis cannot be reached, is too slow, loading, read-only, full, or not sure which of its
// nodes has the key: FailOpen admits, FailClosed refuses, FailLocal keeps to this node's share, and FailError leaves it to the caller.
// There is no default. [Result].From tells who has decided.
//
//	Take ──► deny cache ──► lease ──► breaker ──► Redis, for up to LinkConfig.Timeout
//	                                     │          │
//	                                     └──────────┴──► OnOutage: FailOpen, FailClosed, FailLocal or FailError
//
// A breaker stands before each server: one before a stand-alone Redis, for all limiters of a [Link], and one before each master of a
// Cluster, so that a master that is unavailable affects the limits of its own keys alone. A breaker opens after five round trips that failed;
// all callers that shared such a round trip waited for it, a Timeout at most. From then on about one decision per second finds
// out whether the server is back. A request whose answer was lost is never sent again: it may have been decided.
// What a Cluster refuses while it moves a slot is asked again until the Timeout is over.
//
// What counts against Redis is what it does within the Timeout of the link. A caller that gives up, or comes with a deadline that is shorter,
// counts for nothing; where its command is under way it stays until there is an answer, for a Timeout at most.
//
// A Cluster should have cluster-require-full-coverage set to no, or else one master that is unavailable takes all others along.
//
// # Keys
//
// What limiters have in Redis begins with [LinkConfig].Prefix and the limiter's name; then comes the user's key, between braces,
// so that all keys of a decision are in one slot of a Cluster, but for those of a [Shared]. In a key of up to 256 bytes only '%' and '}' are written
// otherwise (%25, %7D); of a longer one there is the SHA-256. Nothing is ever scanned. Who has the same prefix, name and key has
// the same limit, so limiters of different limits or kinds need different names, but for those of package rediscell. A rate or a limit may be
// changed: what was taken still counts, but where the Window of a FixedWindow becomes shorter.
//
// Strangers who choose keys can choose many of one slot, since the slot is that of the key as it is. If that matters, give an HMAC of
// the key.
//
// # Rights
//
// A user of a stand-alone Redis needs these rights, if the prefix is "weir:". The last line is for Calls
// alone. (The client of a Cluster asks for the slots besides.)
//
//	ACL SETUSER limits on >secret ~weir:* +info +command|info +eval +evalsha +time +get +set +del +unlink +pttl
//	+pexpire +zadd +zcard +zrange +zrangebyscore +zrevrangebyscore +zrem +zremrangebyrank
//	+hmget +hset +hdel +hscan +exists
//
// A limiter with a limit of package rediscell needs +cl.throttle where the server has redis-cell. Without +info and +command|info all works, but a
// server that is too old, or has redis-cell, is not known.
//
// # Errors
//
// An error of these limiters means that there is no decision; a refusal is a Result that is not OK. Errors of Redis are of type
// *StoreError, and match [ErrUnavailable], [ErrForeign] or [ErrServer]. They tell neither addresses nor credentials. Wait gives a
// *limiter.LimitedError where it is of no use to wait.
package fleet
