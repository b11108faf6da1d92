package weir_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// retryAsTold makes callers call a gate at the same time. Each caller retries after the RetryAfter
// of its refusal, until its call is allowed. It returns the times of all tries and the waits of
// all callers, both in ascending order.
func retryAsTold(t *testing.T, g *weir.Gate, callers int) (tries, waits []time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	began := time.Now()
	for i := range callers {
		wg.Go(func() {
			// so the callers begin in the same order in each run
			time.Sleep(time.Duration(i) * time.Microsecond)
			for {
				permit, err := g.Allow(t.Context())
				mu.Lock()
				tries = append(tries, time.Since(began))
				if err == nil {
					waits = append(waits, time.Since(began))
				}
				mu.Unlock()
				if err == nil {
					permit.Record(breaker.Success)
					return
				}
				time.Sleep(weir.RetryAfter(err))
			}
		})
	}
	wg.Wait()
	slices.Sort(tries)
	slices.Sort(waits)
	return tries, waits
}

// mostTriesTogether returns the largest number of tries within 10 ms, without the tries of the
// first 10 ms.
func mostTriesTogether(tries []time.Duration) (most int) {
	for i, first := range tries {
		if first < 10*time.Millisecond {
			continue
		}
		end, _ := slices.BinarySearch(tries, first+10*time.Millisecond)
		most = max(most, end-i)
	}
	return most
}

func TestRefusedCallersComeBackAtTheRateOfTheLimit(t *testing.T) {
	for _, c := range []weir.Config{
		{Rate: limiter.PerSecond(100), Burst: 1},
		{Rate: limiter.PerSecond(100), Burst: 50},
	} {
		synctest.Test(t, func(t *testing.T) {
			for name, g := range map[string]*weir.Gate{
				"gate": weir.New("g", c), "key": hosts(weir.GroupConfig{Gate: c}).Get("a"), "window": weir.Join("g", weir.Parts{
					Breaker: breaker.New("b", breaker.Config{}),
					Limiter: limiter.NewSlidingWindow(limiter.WindowConfig{Limit: 100, Window: time.Second}),
				}),
			} {
				tries, waits := retryAsTold(t, g, 1000)
				t.Logf("%s %v: %d tries, %d at most in 10 ms, median %v, last %v", name, c.Burst, len(tries), mostTriesTogether(tries), waits[500], waits[999])
				require.LessOrEqual(t, len(tries), 2500, "%s: each caller is refused 1.5 times at most, on average", name)
				require.LessOrEqual(t, mostTriesTogether(tries), 50, "%s: no 10 ms has more than 5 %% of the callers", name)
				// The first token of a window comes back after the window and a tenth of it, and
				// 900 callers take 9s.
				require.LessOrEqual(t, waits[999], 11*time.Second, "%s: 1,000 tokens take 10 s", name)
				time.Sleep(time.Hour)
			}
		})
	}
}

func TestKeysThatAreRefusedTogetherHaveTheirOwnMoments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := hosts(weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(1)}})
		for _, key := range []string{"a", "b", "c"} {
			require.NoError(t, g.Get(key).Run(t.Context(), succeed))
			for i := range 3 {
				err := g.Get(key).Run(t.Context(), succeed)
				require.Equal(t, time.Duration(1+i)*time.Second, weir.RetryAfter(err), key)
				require.ErrorContains(t, err, "retry in 1s", "the text tells when the next token is there")
			}
		}
	})
}

func TestRefusalsWithMomentsDoNotAllocate(t *testing.T) {
	g := hosts(weir.GroupConfig{Gate: weir.Config{Rate: limiter.Per(1, time.Hour)}})
	gate := g.Get("a")
	require.NoError(t, gate.Run(t.Context(), succeed))
	require.Error(t, gate.Run(t.Context(), succeed))
	ctx := t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, err := gate.Allow(ctx)
		e, _ := errors.AsType[*limiter.LimitedError](err)
		_ = e.RetryAfter()
	}))
}
