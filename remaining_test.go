package weir_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// exact is a breaker that does not stretch the waits that services ask for.
var exact = breaker.Config{CooldownJitter: breaker.Off}

// tell makes a call whose response says what is left.
func tell(t *testing.T, g *weir.Gate, n int, reset time.Duration) {
	t.Helper()
	permit, err := g.Allow(bg())
	require.NoError(t, err)
	g.SetRemaining(&permit, n, reset)
	permit.Done(bg(), nil)
}

func requireHeldFor(t *testing.T, g *weir.Gate, want time.Duration) {
	t.Helper()
	err := g.Run(bg(), succeed)
	limited, ok := errors.AsType[*limiter.LimitedError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, limiter.Held, limited.Reason)
	require.Equal(t, want, weir.RetryAfter(err))
}

func requireAllowed(t *testing.T, g *weir.Gate, calls int) {
	t.Helper()
	for range calls {
		require.NoError(t, g.Run(bg(), succeed))
	}
}

func TestAGateMakesTheCallsThatAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("api", weir.Config{Breaker: exact})
		tell(t, g, 3, 20*time.Second)
		requireAllowed(t, g, 3)
		requireHeldFor(t, g, 20*time.Second)
		time.Sleep(15 * time.Second)
		requireHeldFor(t, g, 5*time.Second)
		time.Sleep(5 * time.Second)
		requireAllowed(t, g, 4) // as the service had when it was asked first
		requireHeldFor(t, g, time.Second)
		time.Sleep(20 * time.Second)
		requireAllowed(t, g, 100)
	})
}

func TestTheLeastWordCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("api", weir.Config{Breaker: exact})
		tell(t, g, 100, time.Minute)
		tell(t, g, 3, time.Minute)
		slow, err := g.Allow(bg())
		require.NoError(t, err)
		tell(t, g, 3, time.Minute)
		requireAllowed(t, g, 2) // which say nothing
		requireHeldFor(t, g, time.Minute)
		g.SetRemaining(&slow, 1000, time.Minute+time.Second) // it was counted before
		slow.Done(bg(), nil)
		requireAllowed(t, g, 1)
		requireHeldFor(t, g, time.Minute+time.Second)

		time.Sleep(time.Minute + time.Second)
		tell(t, g, 2, time.Minute)
		late, err := g.Allow(bg())
		require.NoError(t, err)
		time.Sleep(time.Second)
		tell(t, g, 50, time.Hour)
		g.SetRemaining(&late, 0, time.Second) // from before the reset
		late.Done(bg(), nil)
		requireAllowed(t, g, 50)
	})
}

func TestAWordFromBeforeTheReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("api", weir.Config{Breaker: exact})
		tell(t, g, 5, 10*time.Second)
		late, err := g.Allow(bg())
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		requireAllowed(t, g, 1)
		time.Sleep(time.Millisecond)
		g.SetRemaining(&late, 0, time.Second)
		late.Done(bg(), nil)
		requireAllowed(t, g, 5)
		requireHeldFor(t, g, time.Second)
	})
}

// Two calls at the same time, of which the service counts one before its reset and one after it, in
// either order of their answers.
func TestCallsAroundAReset(t *testing.T) {
	for _, newFirst := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := weir.New("api", weir.Config{Breaker: exact})
			tell(t, g, 5, 20*time.Second)
			before, err := g.Allow(bg())
			require.NoError(t, err)
			after, err := g.Allow(bg())
			require.NoError(t, err)
			time.Sleep(19 * time.Second)
			for _, isNew := range []bool{newFirst, !newFirst} {
				time.Sleep(time.Millisecond)
				if isNew {
					g.SetRemaining(&after, 9, 20*time.Second)
				} else {
					g.SetRemaining(&before, 0, time.Second)
				}
			}
			before.Done(bg(), nil)
			after.Done(bg(), nil)
			requireAllowed(t, g, 9)
			require.ErrorIs(t, g.Run(bg(), succeed), limiter.ErrLimited)
		})
	}
}

func TestWordsThatMeanNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("api", weir.Config{Breaker: exact})
		for _, reset := range []time.Duration{0, -time.Second, math.MinInt64} {
			tell(t, g, 0, reset)
			requireAllowed(t, g, 10)
		}
		tell(t, g, math.MaxInt, math.MaxInt64)
		requireAllowed(t, g, 10)
		tell(t, g, 0, math.MaxInt64)
		requireHeldFor(t, g, 366*24*time.Hour)
		time.Sleep(366 * 24 * time.Hour)
		tell(t, g, math.MinInt, time.Second)
		requireHeldFor(t, g, time.Second)
		time.Sleep(time.Second)
		requireAllowed(t, g, 1) // one call may always ask
	})
}

func TestACallThatHangsIsCountedInLaterWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("api", weir.Config{Breaker: exact})
		tell(t, g, 5, time.Minute)
		hung, err := g.Allow(bg())
		require.NoError(t, err)
		time.Sleep(11 * time.Second)
		tell(t, g, 3, time.Minute)
		requireAllowed(t, g, 3)
		requireHeldFor(t, g, time.Minute)
		hung.Done(bg(), nil)
		requireHeldFor(t, g, time.Minute)
	})
}

// A call may begin under one word and end under another, at the same time as others.
func TestCallsThatOutliveAWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("api", weir.Config{Breaker: exact})
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				permit, err := g.Allow(bg())
				if err != nil {
					return
				}
				time.Sleep(time.Duration(i%7) * 50 * time.Millisecond)
				g.SetRemaining(&permit, 10, time.Millisecond)
				permit.Done(bg(), nil)
			})
			time.Sleep(3 * time.Millisecond)
		}
		wg.Wait()
		time.Sleep(time.Second)
		requireAllowed(t, g, 100)
	})
}

func TestAWordEndsWithItsClock(t *testing.T) {
	g := weir.New("api", weir.Config{Breaker: exact})
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(2 * time.Hour)
		tell(t, g, 0, time.Hour)
		requireHeldFor(t, g, time.Hour)
	})
	synctest.Test(t, func(t *testing.T) { requireAllowed(t, g, 10) })
}

func TestWhatIsLeftOfACost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		costs := bucketOf(1_000_000)
		g := weir.Join("model", weir.Parts{Breaker: breaker.New("model", exact), Costs: costs})
		permit, err := g.Allow(bg())
		require.NoError(t, err)
		g.SetRemaining(&permit, 100, time.Minute)
		g.SetRemainingCost(&permit, 500, 10*time.Second)
		permit.Done(bg(), nil)
		for _, c := range []struct {
			cost    int
			allowed bool
		}{{300, true}, {201, false}, {200, true}, {1, false}} {
			_, err := callCosting(g, c.cost)
			require.Equal(t, c.allowed, err == nil, c.cost)
		}
		time.Sleep(10 * time.Second)
		_, err = callCosting(g, 600)
		require.NoError(t, err, "one call may always ask")
		_, err = callCosting(g, 1)
		require.ErrorIs(t, err, limiter.ErrLimited)
	})
}

// A call that is not made leaves what it would have taken, and one that fails does not.
func TestCallsThatAreNotMadeLeaveTheirShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("api", weir.Config{Breaker: exact, MaxConcurrent: 1})
		tell(t, g, 2, time.Minute)
		require.NoError(t, g.Run(bg(), func(context.Context) error {
			for range 5 {
				require.ErrorIs(t, g.Run(bg(), succeed), weir.ErrRefused)
			}
			return nil
		}))
		require.ErrorIs(t, g.Run(bg(), fail), errDown)
		requireHeldFor(t, g, time.Minute)
	})
}

func TestCallsWaitForWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("api", weir.Config{Breaker: exact, Rate: limiter.PerSecond(1000), MaxWait: time.Hour})
		service := &fixedWindow{limit: 10, window: 20 * time.Second, left: 10, began: time.Now()}
		for range 7 {
			require.True(t, service.take())
		}
		var wg sync.WaitGroup
		began := time.Now()
		var made [60]time.Duration
		require.NoError(t, service.call(g))
		for i := range made {
			wg.Go(func() {
				if err := service.call(g); err != nil {
					t.Error(err)
				}
				made[i] = time.Since(began)
			})
		}
		wg.Wait()
		require.Zero(t, service.refused)
		early := 0
		for _, at := range made {
			if at < 20*time.Second {
				early++
			}
			require.Less(t, at, 160*time.Second)
		}
		require.Equal(t, 2, early)
	})
}

// fixedWindow is a service that allows limit calls in each window, and says what is left.
type fixedWindow struct {
	mu      sync.Mutex
	limit   int
	window  time.Duration
	left    int
	began   time.Time
	refused int
}

func (s *fixedWindow) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for time.Since(s.began) >= s.window {
		s.began, s.left = s.began.Add(s.window), s.limit
	}
	if s.left == 0 {
		s.refused++
		return false
	}
	s.left--
	return true
}

func (s *fixedWindow) word() (left int, reset time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left, time.Until(s.began.Add(s.window))
}

var errTooMany = errors.New("429")

// call makes a call that the service counts after a while, and answers after another.
func (s *fixedWindow) call(g *weir.Gate) error {
	permit, err := g.Allow(bg())
	if err != nil {
		return err
	}
	time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	ok := s.take()
	left, reset := s.word()
	time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
	g.SetRemaining(&permit, left, reset)
	if !ok {
		err = errTooMany
	}
	permit.Record(bg(), err, breaker.Success)
	return err
}

// A service that counts exactly and tells what is left refuses no call of a client that obeys and
// has one answer, although calls overlap and arrive in any order.
func TestAClientThatObeysIsNotRefused(t *testing.T) {
	total, refused := 0, 0
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		synctest.Test(t, func(t *testing.T) {
			g := weir.New("api", weir.Config{Breaker: exact, Rate: limiter.PerSecond(1000), MaxWait: time.Hour})
			service := &fixedWindow{limit: 5 + rnd.IntN(30), window: time.Duration(1+rnd.IntN(20)) * time.Second, began: time.Now()}
			service.left = service.limit
			require.NoError(t, service.call(g))
			var wg sync.WaitGroup
			for range 300 {
				wg.Go(func() { _ = service.call(g) })
				if rnd.IntN(3) == 0 {
					time.Sleep(time.Duration(rnd.IntN(300)) * time.Millisecond)
				}
			}
			wg.Wait()
			total, refused = total+301, refused+service.refused
		})
	}
	t.Logf("%d of %d refused", refused, total)
	require.Zero(t, refused)
}

// Whatever the service says, and however often: its own gate comes back.
func TestAServiceThatLiesHarmsOnlyItself(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		synctest.Test(t, func(t *testing.T) {
			group := hosts(weir.GroupConfig{Gate: weir.Config{Breaker: exact}})
			for range 200 {
				if permit, err := group.Get("a").Allow(bg()); err == nil {
					n := []int{0, -1, 3, 1000, math.MaxInt, math.MinInt}[rnd.IntN(6)]
					group.Get("a").SetRemaining(&permit, n, time.Duration(rnd.Int64N(int64(time.Minute)))-time.Second)
					if rnd.IntN(10) > 0 {
						permit.Record(bg(), nil, breaker.Success)
					}
				}
				requireAllowed(t, group.Get("b"), 1)
				time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond)
			}
			time.Sleep(2 * time.Minute)
			requireAllowed(t, group.Get("a"), 50)
		})
	}
}

// bucketService is a service with a token bucket. It says what is left, and in how many whole
// seconds the bucket is full.
type bucketService struct{ bucket *limiter.TokenBucket }

func (s bucketService) call(g *weir.Gate, random *rand.Rand) error {
	permit, err := g.Allow(bg())
	if err != nil {
		return err
	}
	there, back := time.Duration(random.IntN(30))*time.Millisecond, time.Duration(random.IntN(30))*time.Millisecond
	time.Sleep(there)
	r := s.bucket.Take(1)
	time.Sleep(back)
	g.SetRemaining(&permit, r.Remaining, max(r.ResetAfter.Truncate(time.Second)+time.Second, time.Second))
	if !r.OK {
		err = errTooMany
	}
	permit.Record(bg(), err, breaker.Success)
	return err
}

// A client that stays below the limit of the service is hardly held, although what is left rises
// and falls. Without obedience, one of the calls gets a 429.
func TestAClientBelowTheLimitIsNotRefused(t *testing.T) {
	total, held, tooMany := 0, 0, 0
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		synctest.Test(t, func(*testing.T) {
			burst := 20 + rnd.IntN(200)
			perSecond := 5 + rnd.Float64()*200
			g := weir.New("api", weir.Config{Breaker: exact})
			service := bucketService{limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(perSecond), Burst: burst})}
			var mu sync.Mutex
			var wg sync.WaitGroup
			for range 2000 {
				random := rand.New(rand.NewPCG(rnd.Uint64(), 6))
				wg.Go(func() {
					err := service.call(g, random)
					mu.Lock()
					defer mu.Unlock()
					switch {
					case errors.Is(err, limiter.ErrLimited):
						held++
					case err != nil:
						tooMany++
					}
				})
				time.Sleep(time.Duration(rnd.ExpFloat64() / (0.95 * perSecond) * float64(time.Second)))
			}
			wg.Wait()
			total += 2000
		})
	}
	t.Logf("%d of %d held, %d answered 429", held, total, tooMany)
	require.Less(t, held, total/1000)
	require.Zero(t, tooMany)
}
