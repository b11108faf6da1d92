package lease_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet/internal/lease"
	"github.com/weir-go/weir/limiter"
)

// server is a limiter behind a slow network. It records the requests it receives.
type server struct {
	limiter.Limiter
	way func() time.Duration // how long a message takes
	err error

	mu      sync.Mutex
	asked   []int // of each question how many tokens; refunds are below 0
	granted int   // less what was given back
	before  func(n int)
}

func newServer(l limiter.Limiter) *server {
	return &server{Limiter: l, way: func() time.Duration { return 0 }, before: func(int) {}}
}

func (s *server) Take(ctx context.Context, _ string, n int) (limiter.Result, error) {
	time.Sleep(s.way())
	s.before(n)
	s.mu.Lock()
	s.asked = append(s.asked, n)
	err, r := s.err, limiter.Result{}
	if err == nil {
		if r = s.Limiter.Take(n); r.OK {
			s.granted += n
		}
	}
	s.mu.Unlock()
	if decided, ok := ctx.Value(decidedKey{}).(*time.Time); ok {
		*decided = time.Now()
	}
	time.Sleep(s.way())
	return r, err
}

func (s *server) Refund(_ context.Context, _ string, n int, _ time.Duration) error {
	time.Sleep(s.way())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, -n)
	s.granted -= n
	s.Limiter.Refund(n)
	return s.err
}

// questions returns the requests since the last call.
func (s *server) questions() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

// decidedKey is the context key of the time at which the server decided.
type decidedKey struct{}

var config = lease.Config{Max: 10, Keys: 100, Age: time.Second, Timeout: time.Minute}

func bucket(perSecond float64, burst int) limiter.Limiter {
	return limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(perSecond), Burst: burst})
}

// limit bounds the grants in any span, m·Max included.
type bound interface {
	admit(at time.Time, n int) bool
}

// atRate is the bound of a token bucket: burst plus rate·span in any span. A bucket of that size
// never refuses.
type atRate struct{ *limiter.TokenBucket }

func (b atRate) admit(at time.Time, n int) bool { return b.TakeAt(at, n).OK }

// inSpan bounds every span of one length.
type inSpan struct {
	most int
	span time.Duration
	log  []time.Time
}

func (b *inSpan) admit(at time.Time, n int) bool {
	for range n {
		b.log = append(b.log, at)
	}
	b.log = slices.DeleteFunc(b.log, func(t time.Time) bool { return at.Sub(t) >= b.span })
	return len(b.log) <= b.most
}

// admission is a grant at a time.
type admission struct {
	at time.Time
	n  int
}

// fleet is several nodes with one server.
type fleet struct {
	server *server
	purses []*lease.Pool

	mu       sync.Mutex
	admitted []admission
	total    int
	held     int // answers that came out of purses
}

func newFleet(s *server, nodes int) *fleet {
	f := &fleet{server: s}
	for range nodes {
		f.purses = append(f.purses, lease.New(s, config))
	}
	return f
}

// take takes n tokens on a node.
func (f *fleet) take(t *testing.T, node, n int) {
	var decided time.Time
	r, held, err := f.purses[node].Take(context.WithValue(t.Context(), decidedKey{}, &decided), "k", n)
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
		f.admitted = append(f.admitted, admission{decided, n})
		f.total += n
	}
}

// run takes tokens on all nodes for a while, in bursts and with pauses, over a slow network.
func (f *fleet) run(t *testing.T, r *rand.Rand, d time.Duration) {
	end := time.Now().Add(d)
	var g sync.WaitGroup
	for node := range f.purses {
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

func TestInAnySpanAFleetAdmitsNoMoreThanTheLimitAndTheLeases(t *testing.T) {
	for _, nodes := range []int{3, 10} {
		rate, burst := 150*nodes, 100*nodes // some of what they ask for, but not all
		spare := nodes * config.Max
		for name, model := range map[string]func() (limiter.Limiter, bound){
			"token bucket": func() (limiter.Limiter, bound) {
				return bucket(float64(rate), burst), atRate{limiter.NewTokenBucketAt(limiter.TokenBucketConfig{Rate: limiter.PerSecond(float64(rate)), Burst: burst + spare}, time.Now().Add(-time.Hour))}
			},
			"sliding log": func() (limiter.Limiter, bound) {
				return limiter.NewSlidingLog(limiter.WindowConfig{Limit: burst, Window: time.Second}), &inSpan{most: burst + spare, span: time.Second}
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
						slices.SortStableFunc(f.admitted, func(a, b admission) int { return a.at.Compare(b.at) })
						for _, a := range f.admitted {
							require.Truef(t, most.admit(a.at, a.n), "%d more at %s exceed the bound", a.n, a.at)
						}
						held := s.granted - f.total
						require.GreaterOrEqual(t, held, 0, "more tokens were handed out than granted")
						require.LessOrEqual(t, held, spare, "held")
						require.Greater(t, f.held, len(f.admitted)/20, "the test has shown too little")
						for _, p := range f.purses {
							require.NoError(t, p.Close(t.Context()))
						}
						require.Equal(t, s.granted, f.total, "all unused tokens are given back")
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
		var g sync.WaitGroup
		for node := range f.purses {
			g.Go(func() {
				for range 3000 {
					f.take(t, node, 1)
					time.Sleep(40 * time.Millisecond) // 75 a second
				}
			})
		}
		g.Wait()
		require.Equal(t, 9000, f.total)
		require.LessOrEqual(t, len(s.questions()), 9000/10)
	})
}

func TestAtTheLimitThereAreNoLeasesAndNothingIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(bucket(100, 100))
		f := newFleet(s, 3)
		var g sync.WaitGroup
		for node := range f.purses {
			g.Go(func() {
				for range 5000 {
					f.take(t, node, 1)
					time.Sleep(12 * time.Millisecond) // 250 a second
				}
			})
		}
		g.Wait()
		require.InDelta(t, 100*60+100, f.total, 60, "a minute's worth and the burst, to 1 %")
		require.Less(t, f.held, 150, "tokens are held only during the burst")
	})
}

func TestAColdKeyHasNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(bucket(100, 1000))
		p := lease.New(s, config)
		for range 10 {
			_, held, err := p.Take(t.Context(), "k", 1)
			require.NoError(t, err)
			require.False(t, held)
			time.Sleep(600 * time.Millisecond)
		}
		require.Equal(t, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, s.questions())
	})
}

func TestHowALeaseGrowsAndShrinks(t *testing.T) {
	for _, test := range []struct {
		name  string
		burst int
		every []time.Duration
		want  []int
	}{
		{"twofold as long as it is used up quickly, to Max", 1000, repeat(40, 0), []int{1, 1, 3, 5, 9, 11, 11}},
		{"to an eighth of what remains", 40, repeat(40, 0), []int{1, 1, 3, 5, 4, 4, 3, 3, 3, 1, 1, 1, 1, 1}},
		{"by half where it lasts for long", 1000, slices.Concat(repeat(19, 0), repeat(40, 700*time.Millisecond)), []int{1, 1, 3, 5, 9, 11, 6, 3, 1, 1, 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerHour(1), Burst: test.burst}))
				p := lease.New(s, config)
				for _, pause := range test.every {
					time.Sleep(pause)
					_, _, err := p.Take(t.Context(), "k", 1)
					require.NoError(t, err)
				}
				asked := s.questions()
				require.Equal(t, test.want, asked[:min(len(asked), len(test.want))])
			})
		})
	}
}

func repeat(n int, d time.Duration) []time.Duration { return slices.Repeat([]time.Duration{d}, n) }

// warm takes tokens until the key has a lease with some tokens left.
func warm(t *testing.T, p *lease.Pool, key string) {
	t.Helper()
	for held := false; !held; {
		var err error
		_, held, err = p.Take(t.Context(), key, 1)
		require.NoError(t, err)
	}
}

func TestWhatTheResultSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1000}))
		p := lease.New(s, config)
		for i := range 8 {
			time.Sleep(100 * time.Millisecond)
			r, _, err := p.Take(t.Context(), "k", 1)
			require.NoError(t, err)
			require.True(t, r.OK)
			require.Equal(t, 1000, r.Limit)
			require.Equal(t, 999-i, r.Remaining, "held tokens remain too, after %d", i+1)
			require.Zero(t, r.RetryAfter)
			require.InDelta(t, time.Duration(i+1)*time.Second, r.ResetAfter, float64(4*time.Second), "after %d", i+1)
		}
	})
}

func TestUnusedLeaseIsGivenBack(t *testing.T) {
	aged := func(t *testing.T, p *lease.Pool) {
		time.Sleep(config.Age)
		_, _, err := p.Take(t.Context(), "other", 1)
		require.NoError(t, err)
	}
	for _, test := range []struct {
		name string
		then func(*testing.T, *lease.Pool)
		want []int
	}{
		{"when it is too old, by a request for another key", aged, []int{-1, 1}},
		{"not while it is young", func(t *testing.T, p *lease.Pool) {
			time.Sleep(config.Age - 1)
			_, _, err := p.Take(t.Context(), "other", 1)
			require.NoError(t, err)
		}, []int{1}},
		{"at Close, and once", func(t *testing.T, p *lease.Pool) {
			require.NoError(t, p.Close(t.Context()))
			require.NoError(t, p.Close(t.Context()))
		}, []int{-1}},
		{"after Close nothing is held any more", func(t *testing.T, p *lease.Pool) {
			require.NoError(t, p.Close(t.Context()))
			for range 4 {
				_, held, err := p.Take(t.Context(), "k", 1)
				require.NoError(t, err)
				require.False(t, held)
			}
		}, []int{-1, 1, 1, 1, 1}},
		{"Forget gives nothing back", func(t *testing.T, p *lease.Pool) {
			p.Forget("k")
			p.Forget("unknown")
			require.NoError(t, p.Close(t.Context()))
		}, nil},
		{"a peek is always asked about", func(t *testing.T, p *lease.Pool) {
			_, held, err := p.Take(t.Context(), "k", 0)
			require.NoError(t, err)
			require.False(t, held)
		}, []int{0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(bucket(100, 1000))
				p := lease.New(s, config)
				warm(t, p, "k") // of two in advance one is left
				s.questions()
				test.then(t, p)
				require.Equal(t, test.want, s.questions())
			})
		})
	}
}

func TestRefillTakesNoMoreThanNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(bucket(100, 1000))
		p := lease.New(s, config)
		for range 24 {
			_, _, err := p.Take(t.Context(), "k", 1)
			require.NoError(t, err)
		}
		s.questions()
		_, held, err := p.Take(t.Context(), "k", 8) // six are in hand, of ten
		require.NoError(t, err)
		require.False(t, held)
		require.Equal(t, []int{8 + 4}, s.questions())
	})
}

func TestCloseDuringARefillLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(bucket(100, 1000))
		p := lease.New(s, config)
		warm(t, p, "k")
		warm(t, p, "k")
		s.way = func() time.Duration { return 100 * time.Millisecond }
		admitted := s.granted // all but what is handed out below
		go func() { _, _, _ = p.Take(t.Context(), "k", 1) }()
		time.Sleep(50 * time.Millisecond)
		require.NoError(t, p.Close(t.Context()))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, admitted+1, s.granted)
	})
}

func TestNothingIsHeldAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(bucket(100, 1000))
		p := lease.New(s, config)
		warm(t, p, "k")
		s.err = errors.New("away")
		_, held, err := p.Take(t.Context(), "k", 1)
		require.True(t, held, "held tokens can be taken")
		require.NoError(t, err)
		s.questions()
		_, held, err = p.Take(t.Context(), "k", 1)
		require.False(t, held)
		require.ErrorIs(t, err, s.err)
		require.Len(t, s.questions(), 1, "a request is not repeated after an error")
		s.err = nil
		warm(t, p, "k")
	})
}

func TestPanicOfTheServerBlocksNoCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(bucket(100, 1000))
		p := lease.New(s, config)
		warm(t, p, "k")
		_, _, err := p.Take(t.Context(), "k", 1)
		require.NoError(t, err)
		s.way = func() time.Duration { return time.Millisecond }
		var once atomic.Bool
		s.before = func(n int) {
			if n > 1 && once.CompareAndSwap(false, true) {
				panic("the server's")
			}
		}
		var g sync.WaitGroup
		g.Go(func() {
			time.Sleep(time.Millisecond / 2)
			_, _, err := p.Take(t.Context(), "k", 1) // waits for the refill
			if err != nil {
				t.Error(err)
			}
		})
		require.Panics(t, func() { _, _, _ = p.Take(t.Context(), "k", 1) })
		g.Wait()
	})
}

func TestWhatIsHeldIsHandedOutAfterMoreWasRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(bucket(1, 40))
		p := lease.New(s, config)
		warm(t, p, "k")
		s.Limiter.Take(35)
		r, _, err := p.Take(t.Context(), "k", 5)
		require.NoError(t, err)
		require.False(t, r.OK)
		r, held, err := p.Take(t.Context(), "k", 1)
		require.NoError(t, err)
		require.True(t, held)
		require.True(t, r.OK)
		require.Zero(t, r.RetryAfter)
	})
}

func TestMoreThanTheLimitIsRefusedWhateverIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(bucket(100, 100))
		p := lease.New(s, config)
		warm(t, p, "k")
		r, held, err := p.Take(t.Context(), "k", 101)
		require.NoError(t, err)
		require.False(t, held)
		require.False(t, r.OK)
		require.Equal(t, limiter.Never, r.RetryAfter)
	})
}

func TestCancellationDuringARefill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(bucket(100, 1000))
		p := lease.New(s, config)
		warm(t, p, "k")
		_, _, err := p.Take(t.Context(), "k", 1)
		require.NoError(t, err)
		s.way = func() time.Duration { return time.Second }
		go func() { _, _, _ = p.Take(t.Context(), "k", 1) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, _, err = p.Take(ctx, "k", 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(10 * time.Second)
	})
}

func TestKeysBeyondTheBoundAreForgottenAndNothingIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(bucket(1, 1_000_000))
		p := lease.New(s, config)
		admitted := 0
		for i := range 1000 {
			for range 5 {
				r, _, err := p.Take(t.Context(), fmt.Sprint(i), 1)
				require.NoError(t, err)
				require.True(t, r.OK)
				admitted++
			}
			require.LessOrEqual(t, lease.Keys(p), config.Keys)
		}
		require.LessOrEqual(t, s.granted-admitted, config.Keys*config.Max)
		require.Positive(t, s.granted-admitted)
		require.NoError(t, p.Close(t.Context()))
		require.Equal(t, admitted, s.granted)
	})
}

func TestManyAtOnce(t *testing.T) {
	s := newServer(bucket(1, 100_000))
	p := lease.New(s, lease.Config{Max: 50, Keys: 3, Age: time.Millisecond, Timeout: time.Minute})
	var g sync.WaitGroup
	var mu sync.Mutex
	admitted := 0
	for i := range 16 {
		g.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			for range 2000 {
				n := 1 + r.IntN(3)
				answer, _, err := p.Take(t.Context(), fmt.Sprint(r.IntN(5)), n)
				if err != nil {
					t.Error(err)
				}
				if answer.OK {
					mu.Lock()
					admitted += n
					mu.Unlock()
				}
			}
		})
	}
	g.Wait()
	require.NoError(t, p.Close(t.Context()))
	require.Equal(t, admitted, s.granted)
}

func BenchmarkTakeHeld(b *testing.B) {
	s := newServer(limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1e9), Burst: 1 << 30}))
	s.before = func(int) { s.asked = s.asked[:0] }
	p := lease.New(s, lease.Config{Max: 1000, Keys: 1000, Age: time.Second, Timeout: time.Minute})
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = p.Take(b.Context(), "k", 1)
	}
}

// A request larger than any lease takes none, so n plus a lease cannot overflow an int.
func TestARequestForMoreThanALeaseHoldsIsAskedForAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, n := range []int{config.Max + 1, math.MaxInt / 4, math.MaxInt - 1, math.MaxInt} {
			s := newServer(bucket(100, 1000))
			p := lease.New(s, config)
			for range 24 {
				_, _, err := p.Take(t.Context(), "k", 1)
				require.NoError(t, err)
			}
			before := s.questions()
			require.Equal(t, config.Max+1, before[len(before)-1], "a busy key has the largest lease")
			r, held, err := p.Take(t.Context(), "k", n)
			require.NoError(t, err)
			require.False(t, held)
			require.Equal(t, n <= 1000, r.OK, "Take(%d)", n)
			require.Equal(t, []int{n}, s.questions(), "Take(%d)", n)
		}
	})
}
