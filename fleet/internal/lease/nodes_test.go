package lease_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet/internal/lease"
	"github.com/weir-go/weir/limiter"
)

// grantBound is an upper bound of the grants of all nodes in any span, including the m·Max tokens
// of leases.
type grantBound interface {
	allow(at time.Time, n int) bool
}

// rateBound is the most that a token bucket allows in any span: burst plus rate·span. The grants
// stay within it if a bucket with that burst and rate refuses none of them.
type rateBound struct{ *limiter.TokenBucket }

func (b rateBound) allow(at time.Time, n int) bool { return b.TakeAt(at, n).OK }

// spanBound bounds every span of one length.
type spanBound struct {
	most int
	span time.Duration
	log  []time.Time
}

func (b *spanBound) allow(at time.Time, n int) bool {
	for range n {
		b.log = append(b.log, at)
	}
	b.log = slices.DeleteFunc(b.log, func(t time.Time) bool { return at.Sub(t) >= b.span })
	return len(b.log) <= b.most
}

// grantAt is a grant at a time.
type grantAt struct {
	at time.Time
	n  int
}

// leaseFleet is several nodes with one server.
type leaseFleet struct {
	server *server
	pools  []*lease.Pool

	mu      sync.Mutex
	allowed []grantAt
	total   int
	held    int // answers that came out of pools
}

func newFleet(s *server, nodes int) *leaseFleet {
	f := &leaseFleet{server: s}
	for range nodes {
		f.pools = append(f.pools, lease.New(s, baseConfig))
	}
	return f
}

// take takes n tokens on a node.
func (f *leaseFleet) take(t *testing.T, node, n int) {
	var decided time.Time
	r, held, _, err := f.pools[node].Take(context.WithValue(t.Context(), decidedKey{}, &decided), "k", n)
	if err != nil {
		t.Error(err)
	}
	if held {
		decided = time.Now()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if held {
		f.held++
	}
	if r.OK {
		f.allowed = append(f.allowed, grantAt{decided, n})
		f.total += n
	}
}

// takeEach takes n tokens on each node, one at a time, with a pause after each.
func (f *leaseFleet) takeEach(t *testing.T, n int, pause time.Duration) {
	var g sync.WaitGroup
	for node := range f.pools {
		g.Go(func() {
			for range n {
				f.take(t, node, 1)
				time.Sleep(pause)
			}
		})
	}
	g.Wait()
}

// run takes tokens on all nodes for a while, in bursts and with pauses, over a slow network.
func (f *leaseFleet) run(t *testing.T, r *rand.Rand, d time.Duration) {
	end := time.Now().Add(d)
	var g sync.WaitGroup
	for node := range f.pools {
		for range 3 {
			pace := time.Duration(1 + r.IntN(100))
			r := rand.New(rand.NewPCG(r.Uint64(), 1))
			g.Go(func() {
				for time.Now().Before(end) {
					switch r.IntN(200) {
					case 0:
						time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
					case 1:
						pace = time.Duration(1 + r.IntN(300))
					}
					f.take(t, node, 1+r.IntN(1+r.IntN(12)))
					time.Sleep(time.Duration(r.Int64N(int64(pace)) * int64(time.Millisecond)))
				}
			})
		}
	}
	g.Wait()
}

func TestInAnySpanAFleetAllowsNoMoreThanTheLimitAndTheLeases(t *testing.T) {
	for _, nodes := range []int{3, 10} {
		rate, burst := 150*nodes, 100*nodes // enough for some of the requests, but not for all
		spare := nodes * baseConfig.Max
		for name, model := range map[string]func() (limiter.Limiter, grantBound){
			"token bucket": func() (limiter.Limiter, grantBound) {
				return bucket(float64(rate), burst), rateBound{limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(float64(rate)), Burst: burst + spare})}
			},
			"sliding log": func() (limiter.Limiter, grantBound) {
				return limiter.NewSlidingLog(limiter.WindowConfig{Limit: burst, Window: time.Second}), &spanBound{most: burst + spare, span: time.Second}
			},
		} {
			for seed := range uint64(3) {
				t.Run(fmt.Sprintf("%s, %d nodes, seed %d", name, nodes, seed), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						l, most := model()
						s, r := newServer(l), rand.New(rand.NewPCG(seed, uint64(nodes)))
						var mu sync.Mutex
						s.way = func() time.Duration {
							mu.Lock()
							defer mu.Unlock()
							return time.Duration(r.IntN(20_000)) * time.Microsecond
						}
						f := newFleet(s, nodes)
						f.run(t, rand.New(rand.NewPCG(seed, 7)), 10*time.Second)
						slices.SortStableFunc(f.allowed, func(a, b grantAt) int { return a.at.Compare(b.at) })
						for _, a := range f.allowed {
							require.Truef(t, most.allow(a.at, a.n), "%d more at %s exceed the bound", a.n, a.at)
						}
						held := s.allGranted() - f.total
						require.GreaterOrEqual(t, held, 0, "more tokens were handed out than granted")
						require.LessOrEqual(t, held, spare, "held")
						require.Greater(t, f.held, len(f.allowed)/20, "the test has shown too little")
						for _, p := range f.pools {
							require.NoError(t, p.Close(t.Context()))
						}
						require.Equal(t, s.allGranted(), f.total, "all unused tokens are given back")
					})
				})
			}
		}
	}
}

func TestABusyKeyBelowItsLimitCostsFewRoundTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(bucket(100, 100))
		f := newFleet(s, 3)
		f.takeEach(t, 3000, 40*time.Millisecond) // 75 a second
		require.Equal(t, 9000, f.total)
		require.LessOrEqual(t, len(s.requests()), 9000/10)
	})
}

func TestAtTheLimitThereAreNoLeasesAndNothingIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(bucket(100, 100))
		f := newFleet(s, 3)
		f.takeEach(t, 5000, 12*time.Millisecond) // 250 a second
		require.InDelta(t, 100*60+100, f.total, 60, "a minute's worth and the burst, to 1 %")
		require.Less(t, f.held, 150, "tokens are held only during the burst")
	})
}
