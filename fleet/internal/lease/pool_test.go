package lease_test

import (
	"fmt"
	"math"
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

var baseConfig = lease.Config{Max: 10, Keys: 100, Age: time.Second, Timeout: time.Minute}

func bucket(perSecond float64, burst int) limiter.Limiter {
	return limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(perSecond), Burst: burst})
}

func TestAColdKeyHasNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(bucket(100, 1000))
		p := lease.New(s, baseConfig)
		for range 10 {
			_, held, _, err := p.Take(t.Context(), "k", 1)
			require.NoError(t, err)
			require.False(t, held)
			time.Sleep(600 * time.Millisecond)
		}
		require.Equal(t, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, s.requests())
	})
}

func TestHowALeaseGrowsAndShrinks(t *testing.T) {
	for _, test := range []struct {
		name  string
		burst int
		every []time.Duration
		want  []int
	}{
		{"twofold as long as it is used up quickly, to Max", 1000, repeatDuration(40, 0), []int{1, 1, 3, 5, 9, 11, 11}},
		{"to an eighth of what remains", 40, repeatDuration(40, 0), []int{1, 1, 3, 5, 4, 4, 3, 3, 3, 1, 1, 1, 1, 1}},
		{"by half where it lasts for long", 1000, slices.Concat(repeatDuration(19, 0), repeatDuration(40, 700*time.Millisecond)), []int{1, 1, 3, 5, 9, 11, 6, 3, 1, 1, 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: test.burst}))
				p := lease.New(s, baseConfig)
				for _, pause := range test.every {
					time.Sleep(pause)
					_, _, _, err := p.Take(t.Context(), "k", 1)
					require.NoError(t, err)
				}
				asked := s.requests()
				require.Equal(t, test.want, asked[:min(len(asked), len(test.want))])
			})
		})
	}
}

func repeatDuration(n int, d time.Duration) []time.Duration {
	return slices.Repeat([]time.Duration{d}, n)
}

// fillLease takes tokens until the key has a lease with unused tokens.
func fillLease(t *testing.T, p *lease.Pool, key string) {
	t.Helper()
	for held := false; !held; {
		var err error
		_, held, _, err = p.Take(t.Context(), key, 1)
		require.NoError(t, err)
	}
}

func TestResultsOfALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1000}))
		p := lease.New(s, baseConfig)
		for i := range 8 {
			time.Sleep(100 * time.Millisecond)
			r, _, _, err := p.Take(t.Context(), "k", 1)
			require.NoError(t, err)
			require.True(t, r.OK)
			require.Equal(t, 1000, r.Limit)
			require.Equal(t, 999-i, r.Remaining, "held tokens remain too, after %d", i+1)
			require.Zero(t, r.RetryAfter)
			require.InDelta(t, time.Duration(i+1)*time.Second, r.ResetAfter, float64(4*time.Second), "after %d", i+1)
		}
	})
}

// takeOtherAfter waits and then takes from a key that has no lease.
func takeOtherAfter(d time.Duration) func(*testing.T, *lease.Pool) {
	return func(t *testing.T, p *lease.Pool) {
		time.Sleep(d)
		_, _, _, err := p.Take(t.Context(), "other", 1)
		require.NoError(t, err)
	}
}

// unusedLeaseCases list events of a lease with one token, and what the server must then receive. A
// positive number is a request for so many tokens, a negative one is a refund.
var unusedLeaseCases = []struct {
	name string
	then func(*testing.T, *lease.Pool)
	want []int
}{
	{"when it is too old", takeOtherAfter(2 * baseConfig.Age), []int{-1, 1}},
	{"not while it is young", takeOtherAfter(baseConfig.Age - 1), []int{1}},
	{"at Close, and once", func(t *testing.T, p *lease.Pool) {
		require.NoError(t, p.Close(t.Context()))
		require.NoError(t, p.Close(t.Context()))
	}, []int{-1}},
	{"after Close nothing is held any more", func(t *testing.T, p *lease.Pool) {
		require.NoError(t, p.Close(t.Context()))
		for range 4 {
			_, held, _, err := p.Take(t.Context(), "k", 1)
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
		_, held, _, err := p.Take(t.Context(), "k", 0)
		require.NoError(t, err)
		require.False(t, held)
	}, []int{0}},
}

func TestUnusedLeaseIsGivenBack(t *testing.T) {
	for _, test := range unusedLeaseCases {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(bucket(100, 1000))
				p := lease.New(s, baseConfig)
				fillLease(t, p, "k") // one of two tokens taken in advance is left
				s.requests()
				test.then(t, p)
				require.Equal(t, test.want, s.requests())
			})
		})
	}
}

func TestMoreThanTheLimitIsRefusedWhateverTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(bucket(100, 100))
		p := lease.New(s, baseConfig)
		fillLease(t, p, "k")
		r, held, _, err := p.Take(t.Context(), "k", 101)
		require.NoError(t, err)
		require.False(t, held)
		require.False(t, r.OK)
		require.Equal(t, limiter.Never, r.RetryAfter)
	})
}

func TestKeysBeyondTheBoundAreForgottenAndNothingIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(bucket(1, 1_000_000))
		p := lease.New(s, baseConfig)
		allowed := 0
		for i := range 1000 {
			for range 5 {
				r, _, _, err := p.Take(t.Context(), fmt.Sprint(i), 1)
				require.NoError(t, err)
				require.True(t, r.OK)
				allowed++
			}
			require.LessOrEqual(t, lease.Keys(p), baseConfig.Keys)
		}
		require.LessOrEqual(t, s.allGranted()-allowed, baseConfig.Keys*baseConfig.Max)
		require.Positive(t, s.allGranted()-allowed)
		require.NoError(t, p.Close(t.Context()))
		require.Equal(t, allowed, s.allGranted())
	})
}

func TestManyAtOnce(t *testing.T) {
	s := newServer(bucket(1, 100_000))
	p := lease.New(s, lease.Config{Max: 50, Keys: 3, Age: time.Millisecond, Timeout: time.Minute})
	var g sync.WaitGroup
	var mu sync.Mutex
	allowed := 0
	for i := range 16 {
		g.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			for range 2000 {
				n := 1 + r.IntN(3)
				answer, _, _, err := p.Take(t.Context(), fmt.Sprint(r.IntN(5)), n)
				if err != nil {
					t.Error(err)
				}
				if answer.OK {
					mu.Lock()
					allowed += n
					mu.Unlock()
				}
			}
		})
	}
	g.Wait()
	require.NoError(t, p.Close(t.Context()))
	require.Equal(t, allowed, s.allGranted())
}

func BenchmarkTakeHeld(b *testing.B) {
	s := newServer(limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1e9), Burst: 1 << 30}))
	s.before = func(int) { s.asked = s.asked[:0] }
	p := lease.New(s, lease.Config{Max: 1000, Keys: 1000, Age: time.Second, Timeout: time.Minute})
	b.ReportAllocs()
	for b.Loop() {
		_, _, _, _ = p.Take(b.Context(), "k", 1)
	}
}

// A request larger than any lease takes none, so n plus a lease cannot overflow an int.
func TestARequestLargerThanItsLeaseGoesToTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, n := range []int{baseConfig.Max + 1, math.MaxInt / 4, math.MaxInt - 1, math.MaxInt} {
			s := newServer(bucket(100, 1000))
			p := lease.New(s, baseConfig)
			for range 24 {
				_, _, _, err := p.Take(t.Context(), "k", 1)
				require.NoError(t, err)
			}
			before := s.requests()
			require.Equal(t, baseConfig.Max+1, before[len(before)-1], "a busy key has the largest lease")
			r, held, _, err := p.Take(t.Context(), "k", n)
			require.NoError(t, err)
			require.False(t, held)
			require.Equal(t, n <= 1000, r.OK, "Take(%d)", n)
			require.Equal(t, []int{n}, s.requests(), "Take(%d)", n)
		}
	})
}

// No request is needed for that.
func TestUnusedLeasesReturnByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(bucket(0.001, 100_000))
		p := lease.New(s, baseConfig)
		keys, used := []string{"a", "b", "c", "d", "e"}, 0
		for _, key := range keys {
			for range 20 {
				_, _, _, err := p.Take(t.Context(), key, 1)
				require.NoError(t, err)
				used++
			}
		}
		require.Greater(t, s.allGranted(), used, "some tokens are held")
		time.Sleep(2 * baseConfig.Age)
		require.Equal(t, used, s.allGranted())
		for range 10 { // a key in use keeps its lease
			_, _, _, err := p.Take(t.Context(), "a", 1)
			require.NoError(t, err)
			used++
			time.Sleep(baseConfig.Age / 4)
		}
		time.Sleep(2 * baseConfig.Age)
		require.Equal(t, used, s.allGranted())
		s.requests()
		time.Sleep(time.Hour)
		require.Empty(t, s.requests())
	})
}

// A pool in a package variable is used in one bubble after the other, each with its own clock, and
// then outside. Tokens of another clock are not handed out.
func TestLeasesOfAnotherClock(t *testing.T) {
	s := newServer(bucket(1000, 10_000))
	p := lease.New(s, baseConfig)
	refunds := func() []int { return slices.DeleteFunc(s.requests(), func(n int) bool { return n > 0 }) }
	for _, wait := range []time.Duration{time.Hour, 0} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(wait)
			_, held, _, err := p.Take(t.Context(), "k", 1)
			require.NoError(t, err)
			require.False(t, held)
			fillLease(t, p, "k")
			require.Empty(t, refunds())
		})
	}
	_, held, _, err := p.Take(t.Context(), "k", 1)
	require.NoError(t, err)
	require.False(t, held)
	require.NotEmpty(t, refunds(), "the server gets them, and knows that they are 26 years old")
	synctest.Test(t, func(t *testing.T) {
		fillLease(t, p, "other")
		time.Sleep(3 * time.Second)
		require.Zero(t, lease.Keys(p), "unused leases return in each clock")
		require.NotEmpty(t, refunds())
	})
}
