package breaker_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// suspend makes calls with a timeout of one second, which ignore it and all end when the given time
// is over. It calls meanwhile while the calls are in flight.
func (s *service) suspend(calls int, length time.Duration, meanwhile func()) {
	wake := make(chan struct{})
	for range calls {
		s.group.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = s.b.Run(ctx, func(ctx context.Context) error {
				<-wake
				return ctx.Err()
			})
		})
	}
	synctest.Wait()
	begin := time.Now()
	meanwhile()
	time.Sleep(time.Until(begin.Add(length)))
	close(wake)
	synctest.Wait()
}

func TestASuspendedProcessOpensNothing(t *testing.T) {
	for name, before := range map[string]time.Duration{"at first": 0, "later": 20 * time.Second} {
		for _, length := range []time.Duration{3 * time.Second, 30 * time.Second, time.Hour} {
			t.Run(name+", "+length.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newService(breaker.Config{}, 50*time.Millisecond)
					defer s.group.Wait()
					s.callFor(before, longTimeout)
					time.Sleep(time.Second)
					s.suspend(100, length, func() {})
					require.Equal(t, int64(100), s.b.Totals().Ignored)
					require.Zero(t, s.b.Totals().Failures)
					s.callFor(time.Second, longTimeout)
					require.Empty(t, s.refused)
				})
			})
		}
	}
}

// If a process was not suspended, some of its calls end while other calls ignore their deadlines.
func TestLateResultsOfARunningProcessCount(t *testing.T) {
	for name, busy := range map[string]time.Duration{
		"busy until the end":          30*time.Second - time.Millisecond,
		"busy after the deadlines":    15 * time.Second,
		"busy until 3 s before":       27 * time.Second,
		"busy, then a pause of 1.5 s": 28500 * time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService(breaker.Config{}, 50*time.Millisecond)
				defer s.group.Wait()
				s.callFor(20*time.Second, longTimeout)
				s.suspend(100, 30*time.Second, func() { s.callFor(busy, longTimeout) })
				require.Zero(t, s.b.Totals().Ignored)
				require.True(t, s.b.Tripped() || s.b.Totals().Failures == 100, "late results count until it opens")
			})
		})
	}
}

// A client that ignores deadlines looks like a suspended process as long as nothing succeeds.
func TestLateResultsAloneOpenAfterAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(breaker.Config{}, 50*time.Millisecond)
		defer s.group.Wait()
		for i := range 20 {
			s.suspend(10, 3*time.Second, func() {})
			if s.b.State() == breaker.Open {
				require.Greater(t, i, 3, "the first results were not 10 s ago")
				return
			}
		}
		require.Fail(t, "it never opens")
	})
}

func TestCallsAreTimedInShortPhases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{})
		for range 3 {
			require.True(t, b.Sampled())
			run(t, b, 64, succeed)
			require.False(t, b.Sampled())
			time.Sleep(9 * time.Second)
			run(t, b, 1000, succeed)
			require.False(t, b.Sampled())
			time.Sleep(time.Second)
			run(t, b, 1, succeed)
		}
		run(t, b, 64, succeed)
		require.False(t, b.Sampled())
		ctx, cancel := context.WithTimeout(bg(), time.Second)
		defer cancel()
		_ = b.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		run(t, b, 1000, succeed)
		require.True(t, b.Sampled(), "a deadline has passed")
		time.Sleep(10 * time.Second)
		run(t, b, 64, succeed)
		require.False(t, b.Sampled())
		time.Sleep(10 * time.Second)
		run(t, b, 1, succeed)
		require.True(t, b.Sampled())
		run(t, b, 64, succeed)
		require.False(t, b.Sampled())
		run(t, b, 1, fail)
		require.False(t, b.Sampled())
		run(t, b, 1, fail)
		require.True(t, b.Sampled(), "it matters which calls began before a failure")
		run(t, b, 64, succeed)
		require.False(t, b.Sampled())
	})
}

// Everything that replaces phases runs at the same time. No result is lost.
func TestDeadlinesInAStorm(t *testing.T) {
	b := breaker.New("b", breaker.Config{FailureRate: breaker.Off, Window: 100 * time.Millisecond, Buckets: 2})
	var group sync.WaitGroup
	const workers, calls = 8, 2000
	for w := range workers {
		group.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			for range calls {
				ctx, cancel := context.WithDeadline(bg(), time.Now().Add(time.Duration(r.IntN(3)-2)*time.Second))
				p, err := b.Allow()
				require.NoError(t, err)
				switch r.IntN(6) {
				case 0, 1, 2:
					p.Done(ctx, nil)
				case 3, 4:
					p.Done(ctx, context.DeadlineExceeded)
				default:
					p.Record(ctx, context.DeadlineExceeded, breaker.Failure)
				}
				cancel()
				if r.IntN(100) == 0 {
					require.NoError(t, b.Reconfigure(breaker.Config{
						FailureRate: breaker.Off, Window: 100 * time.Millisecond, Buckets: 2,
						Latency: r.IntN(2) == 0,
					}))
				}
			}
		})
	}
	group.Wait()
	total := b.Totals()
	require.Equal(t, int64(workers*calls), total.Successes+total.Failures+total.Ignored)
	require.Positive(t, total.Ignored)
	require.Positive(t, total.Failures)
}
