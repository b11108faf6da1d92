package inflight_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/testenv"
)

// server does ten calls at once, which take 20 ms on average in exponential times, behind a
// limiter. Further calls wait in it.
type server struct {
	t       *testing.T
	limiter *inflight.Limiter
	turns   chan struct{}
	work    func(*rand.Rand) time.Duration
	random  *rand.Rand
	all     sync.WaitGroup
}

func newServer(t *testing.T, seed uint64, c inflight.Config) *server {
	return &server{t: t, limiter: inflight.New(c), turns: make(chan struct{}, 10), work: exponential(20 * ms), random: rand.New(rand.NewPCG(seed, 6))}
}

func exponential(mean time.Duration) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration { return time.Duration(r.ExpFloat64() * float64(mean)) }
}

// makeLoad makes calls at a rate per second, and returns how many of them succeeded by the end, how
// many were refused, and the median and the 99th percentile of the time that the former took.
func (s *server) makeLoad(rate float64, length time.Duration) (good, refused int, p50, p99 time.Duration) {
	var mu sync.Mutex
	var times []time.Duration
	left := 0
	for began := time.Now(); time.Since(began) < length; {
		time.Sleep(time.Duration(s.random.ExpFloat64() * float64(time.Second) / rate))
		work := s.work(s.random)
		s.all.Go(func() {
			came := time.Now()
			ok, called := s.call(work)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case !called:
				left++
			case ok:
				times = append(times, time.Since(came))
			}
		})
	}
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(times)
	good = len(times)
	if good == 0 {
		return 0, left, 0, 0
	}
	return good, left, times[good/2], times[good*99/100]
}

func (s *server) call(work time.Duration) (ok, called bool) {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
	defer cancel()
	slot, err := s.limiter.Acquire(ctx)
	if err != nil {
		return false, false
	}
	defer func() { slot.Done(ctx, ctx.Err()) }()
	select {
	case s.turns <- struct{}{}:
	case <-ctx.Done():
		return false, true
	}
	defer func() { <-s.turns }()
	time.Sleep(work)
	return ctx.Err() == nil, true
}

var adaptiveQueue = inflight.Config{Adaptive: true, Queue: inflight.Queue{Target: 20 * ms}}

// forSeeds runs a test with several random loads.
func forSeeds(t *testing.T, test func(t *testing.T, s *server)) {
	for seed := range uint64(testenv.Repeat(4, 1)) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, seed, adaptiveQueue)
			test(t, s)
			s.all.Wait()
			require.Zero(t, s.limiter.InFlight())
		})
	}
}

// The server can do 500 calls per second, of which 99 % take 92 ms at most. The limit aims at twice
// the usual latency. So a call waits for Target in the queue of the limiter, and for one call of 20
// ms in the server.
func TestAnAdaptiveLimitWithAQueueUnderOverload(t *testing.T) {
	for _, warm := range []time.Duration{0, 5 * time.Second} {
		for _, factor := range []float64{1.5, 3, 10} {
			if !testenv.Soak() && (factor == 3) == (warm == 0) {
				continue // make soak tries both
			}
			forSeeds(t, func(t *testing.T, s *server) {
				s.makeLoad(250, warm)
				good, _, _, _ := s.makeLoad(factor*500, 2*time.Second)
				atFirst := 85
				if factor == 10 { // the calls of the first half second fill the server for a second
					atFirst = 50
				}
				require.Greater(t, good, 500*2*atFirst/100, "factor %v, calls answered at first", factor)
				good, _, p50, p99 := s.makeLoad(factor*500, 8*time.Second)
				later, longer := 90, time.Duration(1)
				if warm == 0 { // the first calls wait already
					later, longer = 80, 2
				}
				require.Greater(t, good, 500*8*later/100, "factor %v, calls answered", factor)
				require.Less(t, p50, longer*150*ms, "factor %v", factor)
				require.Less(t, p99, longer*400*ms, "factor %v", factor)
				require.GreaterOrEqual(t, s.limiter.Limit(), 5, "of ten servers")
				require.LessOrEqual(t, s.limiter.Limit(), 200)
			})
		}
	}
}

func TestAnAdaptiveLimitWithAQueueRefusesNothingWithoutAnOverload(t *testing.T) {
	forSeeds(t, func(t *testing.T, s *server) {
		_, refused, _, _ := s.makeLoad(0.85*500, 20*time.Second)
		require.Zero(t, refused, "at 85 % of the capacity")
	})
	forSeeds(t, func(t *testing.T, s *server) {
		s.turns = make(chan struct{}, 1000)
		s.makeLoad(2, time.Minute)
		_, refused, _, _ := s.makeLoad(20_000, time.Second)
		require.Zero(t, refused, "400 calls in flight, after a minute with hardly any")
	})
}

func TestAnAdaptiveLimitWithAQueueReactsWithinASecond(t *testing.T) {
	forSeeds(t, func(t *testing.T, s *server) {
		s.makeLoad(400, 10*time.Second)
		for range cap(s.turns) / 2 {
			s.turns <- struct{}{} // the server can do 250 calls per second
		}
		s.makeLoad(400, time.Second)
		good, _, p50, p99 := s.makeLoad(400, 4*time.Second)
		require.Greater(t, good, 250*4*90/100)
		require.Less(t, p50, 150*ms)
		require.Less(t, p99, 300*ms)
		for range cap(s.turns) / 2 {
			<-s.turns
		}
		s.makeLoad(400, time.Second)
		_, refused, _, _ := s.makeLoad(400, 10*time.Second)
		require.Zero(t, refused)
	})
}

// Calls take ten times as long without a queue in the server. The limiter needs some time to find
// that out. If their times are exponential, it often does not: see the world slower-12 of
// dev/proving.
func TestAnAdaptiveLimitWithAQueueAndAServerThatIsSlowWithoutOverload(t *testing.T) {
	forSeeds(t, func(t *testing.T, s *server) {
		s.turns = make(chan struct{}, 1000)
		s.makeLoad(200, 20*time.Second)
		s.work = func(r *rand.Rand) time.Duration { return 100*ms + time.Duration(r.Float64()*float64(200*ms)) }
		s.makeLoad(200, time.Minute)
		_, refused, _, _ := s.makeLoad(200, time.Minute)
		require.Zero(t, refused)
	})
}

// randomCalls counts calls by how they ended.
type randomCalls struct {
	limiter                                *inflight.Limiter
	now, highest                           atomic.Int64 // in flight
	served, refused, cancelled, notChanged atomic.Int64
}

// try makes a call with a random caller, deadline and end.
func (s *randomCalls) try(ctx context.Context, r *rand.Rand, most int) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(1+r.IntN(300))*time.Microsecond)
	defer cancel()
	if r.IntN(4) == 0 {
		time.AfterFunc(time.Duration(r.IntN(100))*time.Microsecond, cancel)
	}
	slot, err := s.limiter.Acquire(inflight.WithCaller(ctx, inflight.Caller{Priority: inflight.Priority(r.IntN(4) - 2), Tenant: "ab"[:r.IntN(3)]}))
	switch {
	case err == nil:
		s.call(ctx, r, most)
		slot.Done(ctx, ctx.Err())
	case errors.Is(err, inflight.ErrFull):
		s.refused.Add(1)
	default: // before it could wait, or during the wait
		s.cancelled.Add(1)
	}
}

func (s *randomCalls) call(ctx context.Context, r *rand.Rand, most int) {
	n := s.now.Add(1)
	defer s.now.Add(-1)
	for h := s.highest.Load(); n > h && !s.highest.CompareAndSwap(h, n); h = s.highest.Load() {
	}
	s.served.Add(1)
	switch r.IntN(20) {
	case 0:
		<-ctx.Done()
	case 1:
		if err := s.limiter.SetLimit(1 + r.IntN(most)); err != nil {
			s.notChanged.Add(1)
		}
	}
}

// Callers of all priorities come, wait and give up, while the limit adapts and its bound changes.
// No more calls than the highest bound are ever in flight, every call is counted once, and no slot
// is lost.
func TestStormOfAnAdaptiveLimitWithAQueue(t *testing.T) {
	const most, callers, calls = 12, 16, 500
	s := randomCalls{limiter: inflight.New(inflight.Config{
		Adaptive: true, Limit: most, MaxWaiters: 8, Name: "storm", Queue: inflight.Queue{Target: 50 * time.Microsecond},
	})}
	var all sync.WaitGroup
	for seed := range uint64(callers) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, 7))
			for range calls {
				s.try(t.Context(), r, most)
			}
		})
	}
	all.Wait()
	require.Zero(t, s.notChanged.Load())
	require.LessOrEqual(t, s.highest.Load(), int64(most))
	require.Zero(t, s.limiter.InFlight())
	stats := s.limiter.Stats()
	require.Zero(t, stats.Waiting)
	require.Equal(t, s.served.Load(), stats.Allowed+stats.Waited)
	require.Equal(t, s.refused.Load(), stats.Refused)
	require.LessOrEqual(t, stats.Cancelled, s.cancelled.Load())
	require.Equal(t, int64(callers*calls), s.served.Load()+s.refused.Load()+s.cancelled.Load())
	_, ok := tryAcquire(s.limiter)
	require.True(t, ok, "no waiter is left that would keep callers out")
}
