package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/weir-go/weir/limiter"
)

// Config configures a [Limiter].
type Config struct {
	// Link is the Redis that stores the limits. Required.
	Link *Link
	// Limits are the limits of each key, 1 to 10 of them. A request takes its tokens from all of
	// them, or it is refused and takes from none. Redis identifies each by its position, so add and
	// remove limits at the end, and keep their order. Then what was taken still counts, and old and
	// new nodes may work at the same time. A limit of another kind in its place gets ErrForeign for
	// the keys in use: give the limiter another name, under which all limits are full at first. Use
	// [Shared] for a limit of several keys together. Required.
	Limits Limits

	// OnOutage is the policy that decides while Redis is unavailable. Required.
	OnOutage OnOutage
	// Share is this node's share of the limits while Redis is unavailable, above 0 and at most 1.
	// Required if OnOutage is FailLocal, and not allowed otherwise. With m nodes, use 1/m.
	//
	// The node limits each key by a token bucket that is full at first. Its rate and its burst are
	// Share times those of the limit; the burst of a window is its Limit. A request for more tokens
	// than this burst takes a full bucket, and the bucket then owes the rest. So if n is the
	// largest request of a key, the node allows it in any span at most the greater of n and its
	// burst, plus what the rate yields. This is in addition to what Redis allows before and after.
	//
	// Let m nodes have shares of 1 in total, and let L be the Limit or the Burst. If no request is
	// for more than L/m, a SlidingLog or a SlidingWindow allows up to 3·L in a Window around an
	// outage, a FixedWindow 4·L, and a TokenBucket twice what it allows otherwise. With larger
	// requests, or if m is more than L, m·n takes the place of one L: each node allows at least one
	// request of each key.
	Share float64
	// MaxKeys is the maximum number of keys for which FailLocal keeps a bucket. Default 100,000.
	MaxKeys int
	// Overflow decides about a key for which FailLocal has no room, because MaxKeys keys are in
	// use: see [limiter.Overflow]. A key is in use until its bucket is full. The metric
	// weir.limiter.no_room counts the requests of such keys, and Result.NoRoom and errors report
	// them. Default limiter.RefuseNew, which refuses until Redis is asked again.
	Overflow limiter.Overflow
	// MaxWaiters is the maximum number of callers that may wait for one key at the same time.
	// Another caller gets limiter.ErrQueueFull. Default no bound.
	MaxWaiters int

	// MaxDenied is the maximum number of keys whose refusals are remembered, at 200 bytes each plus
	// the key. Off remembers none. Default 10,000.
	//
	// A remembered refusal is repeated without asking Redis until its RetryAfter has passed, for
	// 10s at most. Requests for fewer tokens still ask Redis. A refusal is therefore only repeated
	// if Redis would refuse too, with one exception. Another process, or another limiter of the
	// same name, may give tokens back, reset the key or raise its limit. Or Redis may lose the key
	// (FLUSHALL, an eviction, a failover). Such a change is noticed only when the time has passed.
	// A change through this limiter is noticed at once. If there is no room, the refusal that ends
	// first is forgotten.
	MaxDenied int
	// MaxLease is the maximum number of tokens per key that this node takes from Redis in advance,
	// to hand them out without a round trip each, from 2 to 1,000,000. Default no leases.
	//
	// With leases, m nodes together allow at most m·MaxLease more in any span of time than the
	// limits themselves, and no more in the long run. The size of a lease follows the demand for
	// the key. It is at most an eighth of the remaining tokens, so there are no leases near the
	// limit. A lease not used for a second is given back within two seconds of its last use. Close
	// gives all leases back. If a process ends without Close, its leases are lost as if they had
	// been used. At most 10,000 keys have leases.
	MaxLease int
	// ShowKeys makes Limiter.Busiest return the keys themselves, which may be personal data or
	// secrets, and keeps their texts. Otherwise it returns hashes of them. Default false.
	ShowKeys bool
}

// Off turns off what is on by default.
const Off = -1

const (
	maxLimits = 10
	maxLease  = 1_000_000
	// defaultMaxKeys is the default of Config.MaxKeys.
	defaultMaxKeys = 100_000
)

// compile returns the compiled limits, or an error that names every invalid field of them.
func (c Config) compile() ([]limitSpec, error) {
	var faults []error
	limits := make([]limitSpec, 0, len(c.Limits))
	for i, limit := range c.Limits {
		if limit == nil {
			faults = append(faults, fmt.Errorf("fleet: Limits[%d] is nil, must be given", i))
			continue
		}
		s, err := limit.compile()
		faults = append(faults, err)
		s.index = i
		if i > 0 { // the first keeps its keys if others are added
			for j := range s.keySuffixes {
				s.keySuffixes[j] = ":" + strconv.Itoa(i) + s.keySuffixes[j]
			}
		}
		if s.scope >= scopeFirstBy {
			s.scope += i
		}
		if s.sharedBy != nil && c.MaxLease != 0 {
			faults = append(faults, fmt.Errorf("fleet: MaxLease is %d, must be 0 if Limits[%d] is Shared", c.MaxLease, i))
		}
		limits = append(limits, s)
	}
	return limits, errors.Join(faults...)
}

// maxKeys returns MaxKeys or its default.
func (c Config) maxKeys() int { return cmp.Or(c.MaxKeys, defaultMaxKeys) }

// Validate returns nil if c is valid, and otherwise an error that names every invalid field.
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
	faults = append(faults, err, c.OnOutage.validate())
	switch {
	case c.OnOutage == FailLocal && !(c.Share > 0 && c.Share <= 1):
		fault("Share is %v, must be above 0 and at most 1", c.Share)
	case c.OnOutage != FailLocal && c.Share != 0:
		fault("Share is %v, must be 0 unless OnOutage is fail-local", c.Share)
	}
	if c.MaxKeys < 0 || c.MaxKeys > math.MaxInt32 {
		fault("MaxKeys is %d, must lie between 1 and %d (or be 0 for the default)", c.MaxKeys, math.MaxInt32)
	}
	switch c.Overflow {
	case "", limiter.RefuseNew, limiter.PassNew, limiter.ShareNew:
	default:
		fault("Overflow is %.60q, must be refuse-new, pass-new or share-new", string(c.Overflow))
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

// validateName validates a name that is part of keys, errors and metrics.
func validateName(name string) error {
	if name == "" || strings.ContainsAny(name, "{}") {
		return fmt.Errorf("fleet: the name is %q, must not be empty or have braces", name)
	}
	return nil
}
