package fleet_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/limitertest"
	"github.com/weir-go/weir/limiter/quota"
)

// timedLimiter has the methods of a Limiter that take a time.
type timedLimiter interface {
	TakeAt(ctx context.Context, at time.Time, key string, n int) (fleet.Result, error)
	GiveBackAt(ctx context.Context, at time.Time, key string, n int) error
	GiveBackAged(ctx context.Context, at time.Time, age time.Duration, key string, n int) error
}

// keyAt is one key of a limiter at given times. A refund is made at the latest of them. Time runs a
// thousand times as fast: a nanosecond of the suite is a microsecond of the server, which is its
// resolution.
type keyAt struct {
	testing.TB
	limiter timedLimiter
	key     string
	mu      sync.Mutex
	latest  time.Time
}

const timeStretch = 1000

var testStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

var keysMade atomic.Int64

// newKey returns an unused key.
func newKey() string { return "key " + strconv.FormatInt(keysMade.Add(1), 10) }

func (k *keyAt) Take(n int) limiter.Result { return k.TakeAt(time.Now(), n) }

func (k *keyAt) TakeAt(at time.Time, n int) limiter.Result {
	at = testStart.Add(at.Sub(testStart) * timeStretch)
	k.mu.Lock()
	if at.After(k.latest) {
		k.latest = at
	}
	k.mu.Unlock()
	r, err := k.limiter.TakeAt(context.Background(), at, k.key, n)
	if err != nil {
		k.Errorf("TakeAt(%s, %d): %v", at, n, err)
	}
	if r.RetryAfter != limiter.Never {
		r.RetryAfter /= timeStretch
	}
	r.ResetAfter /= timeStretch
	return r.Result
}

func (k *keyAt) Refund(taken time.Time, n int) {
	if n < 1 {
		return
	}
	age := k.latest.Sub(testStart.Add(taken.Sub(testStart) * timeStretch))
	if err := k.limiter.GiveBackAged(context.Background(), k.latest, age, k.key, n); err != nil {
		k.Errorf("Refund(%d): %v", n, err)
	}
}

// suiteUnit is the duration of a second of a limitertest suite, which keyAt stretches.
const suiteUnit = timeStretch * time.Second

// suiteCases are limits, with the most tokens that they allow at once and in a span.
var suiteCases = map[string]struct {
	limits []fleet.Limit
	limit  int
	most   func(time.Duration) int
}{
	"token bucket": {
		[]fleet.Limit{fleet.TokenBucket{Rate: limiter.Per(1, suiteUnit), Burst: 5}},
		5,
		func(d time.Duration) int { return 5 + int(d/time.Second) },
	},
	"token bucket of 3/s": {
		[]fleet.Limit{fleet.TokenBucket{Rate: limiter.Per(3, suiteUnit), Burst: 4}},
		4,
		func(d time.Duration) int { return 4 + int(3*(d+2)/time.Second) },
	},
	"fixed window": {
		[]fleet.Limit{fleet.FixedWindow{Limit: 5, Window: 3 * suiteUnit}},
		5,
		func(d time.Duration) int { return 5 * int(2+d/(3*time.Second)) },
	},
	"sliding window": {
		[]fleet.Limit{fleet.SlidingWindow{Limit: 5, Window: 3 * suiteUnit, Buckets: 7}},
		5,
		func(d time.Duration) int { return 5 * int(1+d/(3*time.Second)) },
	},
	"sliding log": {
		[]fleet.Limit{fleet.SlidingLog{Limit: 5, Window: 3 * suiteUnit}},
		5,
		func(d time.Duration) int { return 5 * int(1+d/(3*time.Second)) },
	},
	"calendar quota": {
		[]fleet.Limit{fleet.CalendarQuota{Limit: 5, Every: quota.Day}},
		5,
		func(d time.Duration) int { return 5 * int(2+d/(24*time.Hour/timeStretch)) },
	},
	"throttle": {
		[]fleet.Limit{rediscell.Limit(4, 1, suiteUnit)},
		5,
		func(d time.Duration) int { return 5 + int(d/time.Second) },
	},
	"all": {
		[]fleet.Limit{
			fleet.TokenBucket{Rate: limiter.Per(2, suiteUnit), Burst: 5},
			fleet.SlidingLog{Limit: 7, Window: 10 * suiteUnit},
			fleet.SlidingWindow{Limit: 9, Window: time.Hour},
			fleet.FixedWindow{Limit: 20, Window: time.Hour},
		},
		5,
		func(d time.Duration) int { return min(5+int(2*d/time.Second), 7*int(1+d/(10*time.Second))) },
	},
}

// Limiters of a fleet keep the promises of local limiters.
func TestFleetLimitersKeepThePromisesOfLimiters(t *testing.T) {
	t.Parallel()
	l := connect(t)
	for name, s := range suiteCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newLimiters(l, "suite-"+name, errorOnOutage, s.limits...)
			limitertest.Run(t, limitertest.Subject{
				New:   func(time.Time) limiter.TimedLimiter { return &keyAt{TB: t, limiter: b, key: newKey()} },
				Limit: s.limit, Most: s.most, Exact: true, Seeds: testenv.Repeat(12, 4),
			})
		})
	}
}
