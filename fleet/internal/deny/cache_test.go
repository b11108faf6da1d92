package deny_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet/internal/deny"
	"github.com/weir-go/weir/limiter"
)

// server is a token bucket that counts the requests that the cache does not answer.
type server struct {
	*limiter.TokenBucket
	given *limiter.Reservation // the last one that was allowed
	cache *deny.Cache
	asked int
}

func (s *server) Take(n int) limiter.Result {
	r := limiter.Reserve(s.TokenBucket, n)
	if r.OK {
		s.given = r
	}
	return r.Result
}

func newServer(rate limiter.Rate, burst int) *server {
	return &server{TokenBucket: limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: rate, Burst: burst}), cache: deny.New(64, time.Hour)}
}

func (s *server) take(n int) limiter.Result {
	look := s.cache.Lookup("k", n)
	if look.Refused {
		return look.Result
	}
	s.asked++
	r := s.Take(n)
	look.Remember(r)
	return r
}

func TestARefusalIsRepeatedWithoutAskingUntilItsTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(limiter.Per(1, 2*time.Second), 1)
		require.True(t, s.take(1).OK)
		for range 10_000 {
			r := s.take(1)
			require.False(t, r.OK)
			require.Positive(t, r.RetryAfter)
			time.Sleep(199 * time.Microsecond)
		}
		require.Equal(t, 2, s.asked, "the allowed request, and the first refusal")
		time.Sleep(10 * time.Millisecond)
		require.True(t, s.take(1).OK, "after 2 s")
		require.Equal(t, 3, s.asked)
	})
}

func TestWhichRequestsTheCacheRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(limiter.PerSecond(1), 10)
		s.Take(7)
		for _, step := range []struct {
			at, n int
			want  limiter.Result
			asked int
			why   string
		}{
			{0, 5, limiter.Result{Limit: 10, Remaining: 3, RetryAfter: 2 * time.Second, ResetAfter: 7 * time.Second}, 1, "the first is asked about"},
			{0, 5, limiter.Result{Limit: 10, Remaining: 3, RetryAfter: 2 * time.Second, ResetAfter: 7 * time.Second}, 1, "the same is known"},
			{1, 5, limiter.Result{Limit: 10, Remaining: 3, RetryAfter: time.Second, ResetAfter: 6 * time.Second}, 1, "and time goes on"},
			{1, 6, limiter.Result{Limit: 10, Remaining: 3, RetryAfter: 6 * time.Second, ResetAfter: 6 * time.Second}, 1, "more may come when all is there"},
			{1, 11, limiter.Result{Limit: 10, Remaining: 3, RetryAfter: limiter.Never, ResetAfter: 6 * time.Second}, 1, "more than the limit never"},
			{1, 0, limiter.Result{OK: true, Limit: 10, Remaining: 4, ResetAfter: 6 * time.Second}, 2, "a peek is asked about"},
			{1, 4, limiter.Result{OK: true, Limit: 10, Remaining: 0, ResetAfter: 10 * time.Second}, 3, "and so is a request for fewer"},
			{1, 5, limiter.Result{Limit: 10, Remaining: 3, RetryAfter: time.Second, ResetAfter: 6 * time.Second}, 3, "the refusal still holds, and more than it says"},
			{2, 5, limiter.Result{Limit: 10, Remaining: 1, RetryAfter: 4 * time.Second, ResetAfter: 9 * time.Second}, 4, "its time is up"},
			{2, 2, limiter.Result{Limit: 10, Remaining: 1, RetryAfter: time.Second, ResetAfter: 9 * time.Second}, 5, "fewer are asked about, and refused"},
			{2, 3, limiter.Result{Limit: 10, Remaining: 1, RetryAfter: 9 * time.Second, ResetAfter: 9 * time.Second}, 5, "now the smaller refusal is known"},
		} {
			time.Sleep(time.Duration(step.at)*time.Second - time.Since(start(t)))
			require.Equal(t, step.want, s.take(step.n), "take(%d) at %d s: %s", step.n, step.at, step.why)
			require.Equal(t, step.asked, s.asked, "questions after take(%d) at %d s: %s", step.n, step.at, step.why)
		}
	})
}

// start returns the time at which a synctest bubble begins.
func start(t *testing.T) time.Time {
	t.Helper()
	return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
}

// The network is slow in both directions, and other nodes take tokens meanwhile.
func TestCacheRefusesNothingThatTheServerWouldAllow(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			s := newServer(limiter.PerSecond(7), 10)
			refused := 0
			for range 5000 {
				time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
				if r.IntN(4) == 0 {
					s.Take(r.IntN(4)) // another node
				}
				n := 1 + r.IntN(10)
				look := s.cache.Lookup("k", n)
				if look.Refused {
					refused++
					require.Falsef(t, s.Take(n).OK, "seed %d: take(%d) was refused", seed, n)
					continue
				}
				time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
				answer := s.Take(n)
				time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
				look.Remember(answer)
			}
			require.Greater(t, refused, 500)
		})
	}
}

func TestRetryAfterIsEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 1))
		refused := 0
		for range 1000 {
			s := newServer(limiter.PerSecond(7), 10)
			s.Take(r.IntN(11))
			n := 1 + r.IntN(10)
			look := s.cache.Lookup("k", n)
			time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
			answer := s.Take(n)
			time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
			look.Remember(answer)
			time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond)
			n += r.IntN(11 - n)
			if look = s.cache.Lookup("k", n); look.Refused {
				refused++
				time.Sleep(look.Result.RetryAfter)
				require.Truef(t, s.Take(n).OK, "take(%d) after %s", n, look.Result.RetryAfter)
			}
		}
		require.Greater(t, refused, 100)
	})
}

func TestWhenRefusalsAreForgotten(t *testing.T) {
	forget := func(s *server) { s.given.Refund(1); s.cache.Forget("k") }
	raise := func(s *server) { _ = s.SetRate(limiter.PerSecond(1000)); s.cache.Forget("k") }
	for name, change := range map[string]func(*server){"after a refund": forget, "after a raise of the limit": raise} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(limiter.Per(1, time.Hour), 1)
				require.True(t, s.take(1).OK)
				require.False(t, s.take(1).OK)
				change(s)
				time.Sleep(10 * time.Millisecond)
				require.True(t, s.take(1).OK)
			})
		})
		t.Run(name+" while a refusal is on its way", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(limiter.Per(1, time.Hour), 1)
				s.Take(1)
				look := s.cache.Lookup("k", 1)
				refusal := s.Take(1)
				change(s)
				look.Remember(refusal)
				time.Sleep(10 * time.Millisecond)
				require.True(t, s.take(1).OK, "the refusal is older than the change")
			})
		})
	}
}

func TestWhichRefusalsAreNotRemembered(t *testing.T) {
	c := deny.New(8, time.Hour)
	refused := limiter.Result{Limit: 10, RetryAfter: time.Hour, ResetAfter: time.Hour}
	for _, test := range []struct {
		name   string
		key    string
		n      int
		answer limiter.Result
	}{
		{"what was let through", "a", 1, limiter.Result{OK: true, Limit: 10}},
		{"what can never be had, for the server says so without looking", "b", 11, limiter.Result{Limit: 10, RetryAfter: limiter.Never}},
		{"a peek", "c", 0, refused},
		{"nonsense", "d", -1, refused},
		{"a refusal without a time", "e", 1, limiter.Result{Limit: 10}},
	} {
		look := c.Lookup(test.key, test.n)
		look.Remember(test.answer)
		after := c.Lookup(test.key, max(test.n, 1))
		require.False(t, after.Refused, test.name)
	}
}

func BenchmarkLookRefused(b *testing.B) {
	c := deny.New(4096, time.Hour)
	look := c.Lookup("k", 1)
	look.Remember(limiter.Result{Limit: 10, RetryAfter: time.Hour, ResetAfter: time.Hour})
	b.Run("serial", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if !c.Lookup("k", 1).Refused {
				b.Fatal("not refused")
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if !c.Lookup("k", 1).Refused {
					b.Fatal("not refused")
				}
			}
		})
	})
}

// A cache in a package variable is used in one bubble after the other, each with its own clock.
func TestARefusalOfAnotherClockIsForgotten(t *testing.T) {
	cache := deny.New(64, time.Hour)
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			look := cache.Lookup("k", 1)
			require.False(t, look.Refused)
			time.Sleep(time.Minute)
			look = cache.Lookup("k", 1)
			look.Remember(limiter.Result{RetryAfter: time.Hour, ResetAfter: time.Hour, Limit: 1})
			look = cache.Lookup("k", 1)
			require.True(t, look.Refused)
		})
	}
}
