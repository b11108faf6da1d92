package inflight_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/internal/testenv"
)

// A service that can do 1,000 calls per second is asked for 3,000, for 20 s.
func TestUnderOverloadServedCallsHaveWaitedAtMostTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots, work = 20, 20 * ms
		l := inflight.New(inflight.Config{Limit: slots, MaxWaiters: 1000, Queue: inflight.Queue{Target: 5 * ms}})
		var all sync.WaitGroup
		var mu sync.Mutex
		var waits []time.Duration
		r := rand.New(rand.NewPCG(1, 1))
		for began := time.Now(); time.Since(began) < 20*time.Second; {
			time.Sleep(time.Duration(r.ExpFloat64() * float64(time.Second) / 3000))
			came, exp := time.Now(), r.ExpFloat64()
			all.Go(func() {
				slot, err := l.Acquire(t.Context())
				if err != nil {
					return
				}
				mu.Lock()
				waits = append(waits, time.Since(came))
				mu.Unlock()
				time.Sleep(time.Duration(exp * float64(work)))
				slot.Done(t.Context(), nil)
			})
		}
		all.Wait()
		slices.Sort(waits)
		require.Greater(t, len(waits), 20_000*95/100, "calls answered of 20,000 possible")
		require.LessOrEqual(t, waits[len(waits)*99/100], 5*ms)
	})
}

// The server can do 500 calls per second, of which 99 % take 92 ms at most. The test counts from
// the first moment of the overload.
func TestTheBeginningOfAnOverloadIsServedInTime(t *testing.T) {
	fixed := inflight.Config{Limit: 10, MaxWaiters: 1000, Queue: inflight.Queue{Target: 20 * ms}}
	for name, c := range map[string]struct {
		config  inflight.Config
		longest time.Duration
	}{
		"fixed":    {fixed, 112 * ms},         // and Target
		"adaptive": {adaptiveQueue, 700 * ms}, // which waits for evidence first
	} {
		for _, factor := range []float64{1.5, 3} {
			for seed := range uint64(testenv.Repeat(4, 1)) {
				synctest.Test(t, func(t *testing.T) {
					s := newServer(t, seed, c.config)
					s.makeLoad(250, 3*time.Second)
					good, _, _, p99 := s.makeLoad(factor*500, 8*time.Second)
					s.all.Wait()
					require.Greater(t, good, 500*8*95/100, "%s, factor %v", name, factor)
					require.Less(t, p99, c.longest, "%s, factor %v", name, factor)
				})
			}
		}
	}
}

// At 85 % of the capacity all servers are busy for an Interval now and then.
func TestAFixedLimitWithAQueueRefusesHardlyAnythingWithoutAnOverload(t *testing.T) {
	for seed := range uint64(2) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, seed, inflight.Config{Limit: 10, Queue: inflight.Queue{Target: 20 * ms}})
			_, refused, _, _ := s.makeLoad(0.85*500, 20*time.Second)
			s.all.Wait()
			require.Less(t, refused, 425*20/200)
		})
	}
}
