package inflight_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/inflight"
)

// loadedService is a service behind a limiter, which handles a fixed number of calls at the same
// time.
type loadedService struct {
	t       *testing.T
	limiter *inflight.Limiter
	random  *rand.Rand
	all     sync.WaitGroup
	mu      sync.Mutex
	errors  map[inflight.Caller][]float64 // of the estimates, as shares of the time that was waited
}

func newLoadedService(t *testing.T, seed uint64, q inflight.Queue) *loadedService {
	s := &loadedService{t: t, random: rand.New(rand.NewPCG(seed, 5)), errors: map[inflight.Caller][]float64{}}
	s.limiter = inflight.New(inflight.Config{Limit: 4, Queue: q})
	return s
}

// call makes a call of about 20 ms.
func (s *loadedService) call(c inflight.Caller) {
	took := 15*ms + time.Duration(s.random.Int64N(int64(10*ms)))
	s.all.Go(func() { s.handle(c, took) })
}

func (s *loadedService) handle(c inflight.Caller, took time.Duration) {
	slot, err := s.limiter.Acquire(inflight.WithCaller(s.t.Context(), c))
	require.NoError(s.t, err)
	time.Sleep(took)
	slot.Done(s.t.Context(), nil)
}

// refusal returns the error of a caller that cannot wait.
func (s *loadedService) refusal(c inflight.Caller) *inflight.FullError {
	ctx, cancel := context.WithTimeout(s.t.Context(), 1)
	defer cancel()
	_, err := s.limiter.Acquire(inflight.WithCaller(ctx, c))
	full, ok := errors.AsType[*inflight.FullError](err)
	require.True(s.t, ok, err)
	return full
}

// compareTimes compares two times: when a refused caller is told to expect a slot, and when an
// equal caller that waits gets one.
func (s *loadedService) compareTimes(c inflight.Caller) {
	until := s.refusal(c).Until
	began := time.Now()
	s.all.Go(func() {
		slot, err := s.limiter.Acquire(inflight.WithCaller(s.t.Context(), c))
		require.NoError(s.t, err)
		waited := time.Since(began)
		s.mu.Lock()
		s.errors[c] = append(s.errors[c], float64(until.Sub(began)-waited)/float64(waited))
		s.mu.Unlock()
		time.Sleep(20 * ms)
		slot.Done(s.t.Context(), nil)
	})
	synctest.Wait()
}

// requireMedians fails unless the estimates for every caller were right within a share, in the
// median.
func (s *loadedService) requireMedians(within float64, callers ...inflight.Caller) {
	s.t.Helper()
	for _, c := range callers {
		all := s.errors[c]
		require.GreaterOrEqual(s.t, len(all), 10, "%+v", c)
		slices.Sort(all)
		require.InDelta(s.t, 0, all[len(all)/2], within, "%+v: %.2f", c, all)
	}
}

func callersOfEachPriority() (all []inflight.Caller) {
	for p := inflight.Background; p <= inflight.Critical; p++ {
		all = append(all, inflight.Caller{Priority: p})
	}
	return all
}

// Bursts of 20 to 60 calls of all priorities come, 8 of 10 of them low or background.
func TestARefusedCallerLearnsWhenOneOfItsPriorityGetsASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLoadedService(t, 1, inflight.Queue{})
		callers := callersOfEachPriority()
		for i := range 80 {
			for range 20 + s.random.IntN(41) {
				s.call(callers[min(s.random.IntN(10), 3)^1])
			}
			synctest.Wait()
			time.Sleep(time.Duration(s.random.Int64N(int64(50 * ms))))
			s.compareTimes(callers[i%len(callers)])
			time.Sleep(400 * ms)
		}
		s.all.Wait()
		s.requireMedians(0.3, callers...)
	})
}

// One tenant has ten times as many waiters as the other, and half of its weight.
func TestARefusedCallerLearnsWhenOneOfItsTenantGetsASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLoadedService(t, 2, inflight.Queue{TenantWeight: func(name string) float64 { return float64(len(name)) }})
		large, small := inflight.Caller{Tenant: "a"}, inflight.Caller{Tenant: "bb"}
		for i := range 40 {
			for j := range 44 {
				s.call([]inflight.Caller{large, small}[j/40])
			}
			synctest.Wait()
			s.compareTimes([]inflight.Caller{large, small}[i%2])
			time.Sleep(400 * ms)
		}
		s.all.Wait()
		s.requireMedians(0.3, large, small)
	})
}

// At 95 % of what the service can do, calls of higher priority come while others wait. For
// background calls the estimate is too early then.
func TestUntilUnderSteadyLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLoadedService(t, 3, inflight.Queue{})
		callers := callersOfEachPriority()
		for i := range 20_000 {
			time.Sleep(time.Duration(s.random.ExpFloat64() * float64(time.Second) / 190))
			s.call(callers[s.random.IntN(4)])
			synctest.Wait()
			if i%50 == 0 && s.limiter.InFlight() == 4 {
				s.compareTimes(callers[s.random.IntN(4)])
			}
		}
		s.all.Wait()
		s.requireMedians(0.4, callers[1:]...)
	})
}

// Calls take five times as long as in the burst before.
func TestUntilFollowsTheRateOfReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLoadedService(t, 4, inflight.Queue{})
		for _, took := range []time.Duration{20 * ms, 100 * ms} {
			for range 40 {
				s.all.Go(func() { s.handle(inflight.Caller{}, took) })
			}
			synctest.Wait()
			time.Sleep(5*took - ms) // 16 calls have ended, 4 run, and 20 wait
			got := time.Until(s.refusal(inflight.Caller{}).Until)
			require.InEpsilon(t, 5*took, got, 0.4, "the next caller gets a slot when 40 have ended: %v", got)
			s.all.Wait()
			time.Sleep(time.Hour)
		}
	})
}
