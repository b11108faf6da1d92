package fleet

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Config configures a [Limiter].
type Config struct {
	// Link is the Redis that keeps the limits. Must be given.
	Link *Link
	// Limits are the limits of each key, 1 to 10. A request is admitted by all of them, or refused
	// and taken from none, in one round trip. If there are several, what was taken of each is found
	// by its place among them: keep their order. A limit of several keys together is a [Shared].
	// Must be given.
	Limits Limits

	// OnOutage decides while Redis is unavailable. Must be given.
	OnOutage OnOutage
	// Share is this node's share of the limit while Redis is unavailable and OnOutage is FailLocal: above 0 and at
	// most 1. With m nodes that is 1/m. The node keeps to it by a token bucket, full at first, of
	// that share of the rate and of the most that can be taken at once, but at least 1; so in any
	// span of a window up to twice the share is admitted, on top of what Redis admitted before and
	// after: with shares of 1 in all, a SlidingLog or SlidingWindow admits up to three times its
	// Limit in a Window around an outage, a FixedWindow four times, and a TokenBucket twice what it
	// admits otherwise. Must be given there, and nowhere else.
	Share float64
	// MaxKeys is the most keys that are remembered while Redis is unavailable and OnOutage is FailLocal. Default:
	// 100,000.
	MaxKeys int
	// MaxWaiters is the most callers that may wait at once for one key; the next gets
	// limiter.ErrQueueFull. Default: no bound.
	MaxWaiters int

	// MaxDenied is the most keys whose refusals are remembered, at 200 bytes each and the key. What
	// Redis has refused is refused here too, and it is not asked, for the RetryAfter that it gave,
	// but no longer than 10 s; requests for fewer permits are asked about. That refuses nothing
	// that Redis would let through, unless someone else gives permits back, resets the key or
	// raises its limit, which is seen when that time is over. What this limiter does is seen at
	// once; another of the same name is someone else. Where there is no room the refusal that ends
	// soonest is forgotten. Off remembers none. Default: 10,000.
	MaxDenied int
	// MaxLease is the most permits of a key that this node takes from Redis in advance, to hand
	// them out without a round trip each: at least 2 and at most 1,000,000. In any span of time all
	// nodes together then admit at most what the limiter itself admits in that span, and m·MaxLease
	// more where there are m of them; in the long run no more than the limiter. How many are taken
	// depends on how busy the key is, and is at most an eighth of what remains, so that there are
	// no leases near the limit. What a key has not been asked for in a second is given back by the
	// next request for another key that goes to Redis, and all by Close; a process that ends
	// without loses them, as if they had been used. 10,000 keys have leases at most. Default: no
	// leases.
	MaxLease int
}

// Off turns off what is on by default.
const Off = -1

const (
	maxLimits = 10
	maxLease  = 1_000_000
)

// compile returns the limits, ready for the scripts, or an error that names the faults of all.
func (c Config) compile() ([]scopedLimit, error) {
	var faults []error
	terms := make([]scopedLimit, 0, len(c.Limits))
	for i, limit := range c.Limits {
		if limit == nil {
			faults = append(faults, fmt.Errorf("fleet: Limits[%d] is nil, must be given", i))
			continue
		}
		t, err := limit.compile()
		faults = append(faults, err)
		if t.index = i; len(c.Limits) > 1 {
			t.keySuffix = ":" + strconv.Itoa(i)
		}
		if t.scope >= firstCustomScope {
			t.scope += i
		}
		if t.sharedBy != nil && c.MaxLease != 0 {
			faults = append(faults, fmt.Errorf("fleet: MaxLease is %d, must be 0 where Limits[%d] is Shared", c.MaxLease, i))
		}
		terms = append(terms, t)
	}
	return terms, errors.Join(faults...)
}

// Validate returns nil for a configuration that makes sense, and otherwise an error that names all
// faults.
func (c Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf("fleet: "+format, args...)) }
	if c.Link == nil {
		fault("Link is nil, must be given")
	}
	if len(c.Limits) < 1 || len(c.Limits) > maxLimits {
		fault("Limits has %d, must have between 1 and %d", len(c.Limits), maxLimits)
	}
	_, err := c.compile()
	faults = append(faults, err)
	faults = append(faults, c.OnOutage.validate())
	switch {
	case c.OnOutage == FailLocal && !(c.Share > 0 && c.Share <= 1):
		fault("Share is %v, must be above 0 and at most 1", c.Share)
	case c.OnOutage != FailLocal && c.Share != 0:
		fault("Share is %v, must be 0 unless OnOutage is fail-local", c.Share)
	}
	if c.MaxKeys < 0 || c.MaxKeys > math.MaxInt32 {
		fault("MaxKeys is %d, must lie between 1 and %d (or be 0 for the default)", c.MaxKeys, math.MaxInt32)
	}
	if c.MaxWaiters < 0 {
		fault("MaxWaiters is %d, must be at least 1 (or 0 for no bound)", c.MaxWaiters)
	}
	if c.MaxDenied < Off || c.MaxDenied > math.MaxInt32 {
		fault("MaxDenied is %d, must lie between 1 and %d (or be 0 for the default, or Off)", c.MaxDenied, math.MaxInt32)
	}
	if c.MaxLease != 0 && (c.MaxLease < 2 || c.MaxLease > maxLease) {
		fault("MaxLease is %d, must lie between 2 and %d (or be 0 for no leases)", c.MaxLease, maxLease)
	}
	return errors.Join(faults...)
}

// validateName looks at a name, which stands in keys, errors and metrics.
func validateName(name string) error {
	if name == "" || strings.ContainsAny(name, "{}") {
		return fmt.Errorf("fleet: the name is %q, must not be empty or have braces", name)
	}
	return nil
}
