package fleet_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/limiter"
)

// grant is a number of tokens that the model allowed for a key at one time.
type grant struct {
	key string
	at  time.Duration
	n   int
}

// grantList is a model of Shared limits: a list of grants.
type grantList struct {
	span   time.Duration
	limits []int
	by     []func(string) string
	grants []grant
}

// used returns what one of the limits counts for a key.
func (l *grantList) used(i int, key string, at time.Duration) (sum int) {
	for _, g := range l.grants {
		if l.by[i](g.key) == l.by[i](key) && g.at > at-l.span {
			sum += g.n
		}
	}
	return sum
}

// fits reports whether all limits allow n at a time.
func (l *grantList) fits(key string, at time.Duration, n int) bool {
	for i := range l.limits {
		if l.used(i, key, at)+n > l.limits[i] {
			return false
		}
	}
	return true
}

// soonest returns how long it takes until n fit.
func (l *grantList) soonest(key string, at time.Duration, n int) time.Duration {
	for i := range l.limits {
		if n > l.limits[i] {
			return limiter.Never
		}
	}
	best := limiter.Never
	for _, g := range append(l.grants, grant{at: at - l.span}) {
		if wait := g.at + l.span - at; wait >= 0 && wait < best && l.fits(key, at+wait, n) {
			best = wait
		}
	}
	return best
}

// Random requests of users of tenants at given times are decided as by a simple list of grants, on
// one server and on several. A refused request takes from no limit, RetryAfter is the shortest
// possible, and Remaining is the least.
func TestSharedLimitsMatchModel(t *testing.T) {
	for name, link := range sharedLinks(t) {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(17, 4))
			oracle := grantList{
				span: time.Second, limits: []int{5, 9, 14},
				by: []func(string) string{func(key string) string { return key }, tenantOf, func(string) string { return "" }},
			}
			b := newLimiters(link, "ledger", errorOnOutage, fleet.SlidingLog{Limit: 5, Window: time.Second},
				fleet.Shared{By: tenantOf, Limit: fleet.SlidingLog{Limit: 9, Window: time.Second}},
				fleet.Shared{Limit: fleet.SlidingLog{Limit: 14, Window: time.Second}})
			refused := [4]int{}
			for at, step := time.Duration(0), 0; step < 1500; step++ {
				at += time.Duration(random.Int64N(int64(80 * ms))).Truncate(time.Microsecond)
				key := fmt.Sprintf("t%d/u%d", random.IntN(3), random.IntN(3))
				n := random.IntN(4)
				r, err := b.TakeAt(t.Context(), testStart.Add(at), key, n)
				require.NoError(t, err)
				fits := oracle.fits(key, at, n)
				require.Equal(t, fits, r.OK, "step %d: Take(%s, %d)", step, key, n)
				if !fits {
					require.Equal(t, oracle.soonest(key, at, n), r.RetryAfter, "step %d: Take(%s, %d)", step, key, n)
				} else if n > 0 {
					oracle.grants = append(oracle.grants, grant{key, at, n})
				}
				left := 100
				for i, limit := range oracle.limits {
					left = min(left, limit-oracle.used(i, key, at))
					if !fits && oracle.used(i, key, at)+n > limit {
						refused[i]++
					}
				}
				require.Equal(t, left, r.Remaining, "step %d: after Take(%s, %d)", step, key, n)
			}
			for i := range oracle.limits {
				require.Greater(t, refused[i], 50, "limit %d was hardly tested", i)
			}
		})
	}
}
