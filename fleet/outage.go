package fleet

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/weir-go/weir/limiter"
)

// OnOutage is the policy that decides while Redis is unavailable: see [ErrUnavailable]. The empty
// string is not a policy.
type OnOutage string

const (
	// FailOpen allows every request for no more than the limit.
	FailOpen OnOutage = "fail-open"
	// FailClosed refuses every request.
	FailClosed OnOutage = "fail-closed"
	// FailLocal limits each key to this node's share: see Config.Share.
	FailLocal OnOutage = "fail-local"
	// FailError returns the error of Redis.
	FailError OnOutage = "fail-error"
)

func (o OnOutage) validate() error {
	switch o {
	case FailOpen, FailClosed, FailLocal, FailError:
		return nil
	}
	return fmt.Errorf("fleet: OnOutage is %.60q, must be fail-open, fail-closed, fail-local or fail-error", string(o))
}

// fallback decides about some limits by the policy.
type fallback struct {
	policy OnOutage
	limits []limitSpec
	shares []*shareTable // of each limit, for FailLocal
	noRoom *metric       // counts requests of keys without room
}

func newFallback(c Config, limits []limitSpec, noRoom *metric) fallback {
	f := fallback{policy: c.OnOutage, limits: limits, noRoom: noRoom}
	if c.OnOutage == FailLocal {
		for _, s := range limits {
			f.shares = append(f.shares, newShareTable(s, c))
		}
	}
	return f
}

// take takes n tokens and returns the result of each limit. retryAfter is the wait until the next
// request to Redis.
func (f fallback) take(k requestKey, n int, retryAfter time.Duration) []limiter.Result {
	return f.decide(k, n, false, retryAfter)
}

// peek returns what take would return.
func (f fallback) peek(k requestKey, n int, retryAfter time.Duration) []limiter.Result {
	return f.decide(k, n, true, retryAfter)
}

func (f fallback) decide(k requestKey, n int, peek bool, retryAfter time.Duration) []limiter.Result {
	if f.policy == FailLocal && n >= 0 && n <= maxTakeOfAll(f.limits) {
		return f.decideLocally(k, n, peek, retryAfter)
	}
	results := make([]limiter.Result, len(f.limits))
	for i, s := range f.limits {
		r := limiter.Result{OK: f.policy != FailClosed || n == 0, Limit: s.maxTake}
		switch {
		case n < 0 || n > r.Limit:
			r.OK, r.RetryAfter = false, limiter.Never
		case r.OK:
			r.Remaining = r.Limit - n
		default:
			r.RetryAfter = retryAfter
		}
		results[i] = r
	}
	return results
}

// decideLocally takes tokens from this node's share of all limits, or of none.
func (f fallback) decideLocally(k requestKey, n int, peek bool, retryAfter time.Duration) []limiter.Result {
	results := make([]limiter.Result, len(f.limits))
	refused, noRoom := len(f.shares), false
	for i, share := range f.shares {
		// after a refusal, the others only report their state
		results[i] = share.take(f.limits[i].tagFor(k), n, peek || refused < i, retryAfter)
		noRoom = noRoom || results[i].NoRoom
		if !results[i].OK {
			refused = min(refused, i)
		}
	}
	if noRoom && n > 0 && !peek {
		f.noRoom.Add(1)
	}
	if refused < len(f.shares) && !peek {
		for i := range refused {
			tag := f.limits[i].tagFor(k)
			f.shares[i].refund(tag, n, 0)
			results[i] = f.shares[i].take(tag, n, true, retryAfter)
		}
	}
	return results
}

// refund gives back the tokens that have not returned since they were taken.
func (f fallback) refund(k requestKey, n int, age time.Duration) {
	for i, share := range f.shares {
		share.refund(f.limits[i].tagFor(k), n, age)
	}
}

// settle takes n tokens, whether there are as many or not, or gives back -n as refund does.
func (f fallback) settle(k requestKey, n int, age time.Duration) {
	if n < 0 {
		f.refund(k, -n, age)
		return
	}
	for i, share := range f.shares {
		share.charge(f.limits[i].tagFor(k), n)
	}
}

// shareTable has this node's share of one limit: a token bucket per key, for FailLocal.
//
// A bucket holds burst tokens, which need not be a whole number. A request for more than that takes
// a full bucket, and the bucket then owes the rest. In any span of time a key therefore gets at
// most max(burst, n) tokens plus those of the rate, if n is its largest request.
type shareTable struct {
	limit    int     // the most tokens of one request
	burst    float64 // tokens
	rate     float64 // tokens per nanosecond
	maxKeys  int
	shareNew bool
	epoch    time.Time

	mu      sync.Mutex
	index   map[string]int // in buckets, by key
	buckets []shareBucket
	next    int         // where the search for a full bucket goes on
	others  shareBucket // of all keys without room, if shareNew
}

// shareBucket is the bucket of one key.
type shareBucket struct {
	key     string
	missing float64       // tokens; more than burst if some are owed
	at      time.Duration // when missing was computed
}

func newShareTable(s limitSpec, c Config) *shareTable {
	t := &shareTable{
		limit: s.maxTake, burst: float64(s.maxTake) * c.Share, rate: s.events * c.Share / float64(s.per),
		maxKeys: c.maxKeys(), shareNew: c.ShareNew, epoch: time.Now(), index: map[string]int{},
	}
	return t
}

// take takes n tokens of a key, or only reports whether it could.
func (t *shareTable) take(key string, n int, peek bool, retryAfter time.Duration) (r limiter.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b, noRoom := t.bucketFor(key)
	if b == nil {
		r := limiter.Result{OK: n == 0, NoRoom: true, Limit: t.limit}
		if !r.OK {
			r.RetryAfter = retryAfter
		}
		return r
	}
	wants := float64(n)
	over := b.missing + min(wants, t.burst) - t.burst
	r.OK = over <= t.burst*1e-9 // what rounding may add
	if !r.OK {
		r.RetryAfter = max(t.timeFor(over), 1)
	} else if !peek {
		b.missing += wants
	}
	r.NoRoom, r.Limit, r.ResetAfter = noRoom, t.limit, t.timeFor(b.missing)
	if r.Remaining = int(max(t.burst-b.missing, 0)); b.missing == 0 {
		r.Remaining = max(r.Remaining, 1) // a full bucket allows any request
	}
	return r
}

// refund gives back those of n tokens, taken age ago, that the rate has not returned since.
func (t *shareTable) refund(key string, n int, age time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b, _ := t.bucketFor(key); b != nil {
		b.missing = max(b.missing-max(float64(n)-t.rate*float64(age), 0), 0)
	}
}

// charge takes n tokens of a key, which then owes those that it does not have.
func (t *shareTable) charge(key string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b, _ := t.bucketFor(key); b != nil {
		b.missing += float64(n)
	}
}

// mostFullChecks is how many buckets a new key checks in search of a full one.
const mostFullChecks = 16

// bucketFor returns the bucket of a key, with the tokens that have returned. If there is no room
// for the key, it returns the bucket of all such keys, or nil. The caller holds t.mu.
func (t *shareTable) bucketFor(key string) (b *shareBucket, noRoom bool) {
	now := time.Since(t.epoch)
	i, known := t.index[key]
	if !known {
		if i = t.place(now); i < 0 {
			if !t.shareNew {
				return nil, true
			}
			return t.others.refill(now, t.rate), true
		}
		// The key is copied, because it may be part of a large string.
		t.buckets[i] = shareBucket{key: strings.Clone(key), at: now}
		t.index[t.buckets[i].key] = i
	}
	return t.buckets[i].refill(now, t.rate), false
}

// place returns where to store a new key, or -1 if MaxKeys keys are in use. A full bucket is not in
// use, because a new one is full too.
func (t *shareTable) place(now time.Duration) int {
	if len(t.buckets) < t.maxKeys {
		t.buckets = append(t.buckets, shareBucket{})
		return len(t.buckets) - 1
	}
	for range min(mostFullChecks, len(t.buckets)) {
		i := t.next
		t.next = (i + 1) % len(t.buckets)
		if b := t.buckets[i].refill(now, t.rate); b.missing == 0 {
			delete(t.index, b.key)
			return i
		}
	}
	return -1
}

// refill adds the tokens that have arrived. If the last time has not come yet, it is one of another
// clock, such as that of a testing/synctest bubble. Then the bucket starts again full.
func (b *shareBucket) refill(now time.Duration, rate float64) *shareBucket {
	if b.missing = max(b.missing-rate*float64(now-b.at), 0); now < b.at {
		b.missing = 0
	}
	b.at = now
	return b
}

// timeFor returns the time in which tokens arrive, rounded up, and less than limiter.Never.
func (t *shareTable) timeFor(tokens float64) time.Duration {
	if tokens <= 0 {
		return 0
	}
	return time.Duration(min(math.Ceil(tokens/t.rate), math.MaxInt64/2))
}
