package deny_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet/internal/deny"
	"github.com/weir-go/weir/limiter"
)

// server is a token bucket that counts requests, which come if the cache knows nothing.
type server struct {
	*limiter.TokenBucket
	cache *deny.Cache
	asked int
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
		s := newServer(limiter.Every(2*time.Second), 1)
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

func TestWhatIsRefusedAndWhatIsAsked(t *testing.T) {
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

// start returns the time at which a bubble begins.
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

func TestWhatIsForgotten(t *testing.T) {
	forget := func(s *server) { s.Refund(1); s.cache.Forget("k") }
	raise := func(s *server) { _ = s.SetRate(limiter.PerSecond(1000)); s.cache.Forget("k") }
	for name, change := range map[string]func(*server){"after a refund": forget, "after a raise of the limit": raise} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(limiter.PerHour(1), 1)
				require.True(t, s.take(1).OK)
				require.False(t, s.take(1).OK)
				change(s)
				time.Sleep(10 * time.Millisecond)
				require.True(t, s.take(1).OK)
			})
		})
		t.Run(name+" while a refusal is on its way", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(limiter.PerHour(1), 1)
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

func TestWhatIsNotRemembered(t *testing.T) {
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

func TestRefusalsAreNotRememberedLongerThanTheMaximum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := deny.New(8, 10*time.Second)
		look := c.Lookup("k", 1)
		look.Remember(limiter.Result{Limit: 10, RetryAfter: time.Hour, ResetAfter: 2 * time.Hour})
		time.Sleep(10*time.Second - 1)
		known := c.Lookup("k", 1)
		require.True(t, known.Refused)
		require.Equal(t, time.Hour-10*time.Second+1, known.Result.RetryAfter, "the result is that of the server")
		time.Sleep(time.Nanosecond)
		require.False(t, c.Lookup("k", 1).Refused)
	})
}

func TestANilCacheRemembersNothing(t *testing.T) {
	var c *deny.Cache
	look := c.Lookup("k", 1)
	look.Remember(limiter.Result{Limit: 10, RetryAfter: time.Hour})
	c.Forget("k")
	require.False(t, c.Lookup("k", 1).Refused)
}

func TestKeysAreIndependent(t *testing.T) {
	c := deny.New(8, time.Hour) // one set
	refused := limiter.Result{Limit: 10, RetryAfter: time.Hour, ResetAfter: time.Hour}
	for i := range 8 {
		look := c.Lookup(fmt.Sprint(i), 1)
		look.Remember(refused)
	}
	for i := range 16 {
		require.Equal(t, i < 8, c.Lookup(fmt.Sprint(i), 1).Refused, "key %d", i)
	}
}

func TestKeysWithEqualHashesAreDifferent(t *testing.T) {
	c := deny.New(8, time.Hour)
	a, b := c.Lookup("a", 1), c.Lookup("b", 1)
	a.Remember(limiter.Result{Limit: 10, RetryAfter: time.Hour, ResetAfter: time.Hour})
	b.Collide(a)
	require.False(t, b.Refused)
	b.Remember(limiter.Result{Limit: 20, RetryAfter: time.Hour, ResetAfter: time.Hour})
	require.Equal(t, 10, c.Lookup("a", 1).Result.Limit)
	b.Collide(a)
	require.Equal(t, 20, b.Result.Limit)
}

func TestFullSetReplacesTheRefusalThatEndsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := deny.New(8, time.Hour)
		put := func(key string, d time.Duration) {
			look := c.Lookup(key, 1)
			look.Remember(limiter.Result{Limit: 10, RetryAfter: d, ResetAfter: d})
		}
		known := func() (keys string) {
			for key := 'a'; key <= 'z'; key++ {
				if c.Lookup(string(key), 1).Refused {
					keys += string(key)
				}
			}
			return keys
		}
		for i := range 8 {
			put(string(rune('a'+i)), time.Duration(10-i)*time.Second)
		}
		require.Equal(t, "abcdefgh", known())
		put("x", time.Minute)
		require.Equal(t, "abcdefgx", known(), "h would have ended after 3 s")
		time.Sleep(4500 * time.Millisecond)
		require.Equal(t, "abcdefx", known(), "g has ended after 4 s")
		put("y", time.Minute)
		require.Equal(t, "abcdefxy", known())
	})
}

func TestCacheIsBounded(t *testing.T) {
	c := deny.New(1000, time.Hour)
	refused := limiter.Result{Limit: 10, RetryAfter: time.Hour, ResetAfter: time.Hour}
	keys := make([]string, 1_000_000)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
		look := c.Lookup(keys[i], 1)
		look.Remember(refused)
	}
	var known int
	for _, key := range keys {
		if c.Lookup(key, 1).Refused {
			known++
		}
	}
	require.Equal(t, 1000, known)
}

func TestManyAtOnce(t *testing.T) {
	c := deny.New(16, time.Hour)
	var g sync.WaitGroup
	for i := range 8 {
		g.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 2))
			for range 20_000 {
				key := fmt.Sprint(r.IntN(40))
				switch look := c.Lookup(key, 1+r.IntN(3)); {
				case r.IntN(50) == 0:
					c.Forget(key)
				case look.Refused && look.Result.Limit != 10:
					t.Errorf("a refusal that was not remembered: %+v", look.Result)
				default:
					look.Remember(limiter.Result{Limit: 10, RetryAfter: time.Duration(r.IntN(1000)), ResetAfter: time.Second})
				}
			}
		})
	}
	g.Wait()
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
