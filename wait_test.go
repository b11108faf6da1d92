package weir_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
)

func TestCallsWaitUpToMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{Rate: limiter.PerSecond(10), Burst: 1, MaxWait: 250 * time.Millisecond})
		start := time.Now()
		var mu sync.Mutex
		var passed []time.Duration
		var refused atomic.Int64
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				err := g.Run(bg(), func(context.Context) error {
					mu.Lock()
					defer mu.Unlock()
					passed = append(passed, time.Since(start))
					return nil
				})
				if err != nil {
					require.ErrorIs(t, err, limiter.ErrLimited)
					require.True(t, strings.HasPrefix(err.Error(), "limiter g: "), err.Error())
					require.Positive(t, weir.RetryAfter(err))
					refused.Add(1)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		require.Equal(t, []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond}, passed)
		require.Equal(t, int64(2), refused.Load())

		ctx, cancel := context.WithCancel(bg())
		time.AfterFunc(10*time.Millisecond, cancel)
		require.ErrorIs(t, g.Run(ctx, succeed), context.Canceled)
		require.Equal(t, limiter.Stats{Allowed: 1, Waited: 2, Refused: 2, Cancelled: 1}, g.Stats())

		hurried, stop := context.WithTimeout(bg(), time.Millisecond)
		defer stop()
		err := g.Run(hurried, succeed)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, weir.ErrRefused, "the deadline cannot be met, so the call is refused at once")
	})
}

func TestWaitingCallsAreRefusedWhenTheBreakerOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{Rate: limiter.PerSecond(1), Burst: 20, MaxWait: time.Hour, Breaker: breaker.Config{MinCalls: 21, FailureRun: breaker.Off}})
		for range 19 {
			require.ErrorIs(t, g.Run(bg(), fail), errDown)
		}
		last, err := g.Breaker().Allow() // its failure opens the breaker
		require.NoError(t, err)
		require.NoError(t, g.Run(bg(), func(context.Context) error { return nil }))

		start := time.Now()
		var refused atomic.Int64
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if err := g.Run(bg(), succeed); errors.Is(err, breaker.ErrOpen) && weir.RetryAfter(err) == time.Second {
					refused.Add(1)
				}
			})
		}
		time.Sleep(500 * time.Millisecond)
		require.True(t, last.Record(bg(), nil, breaker.Failure))
		wg.Wait()
		require.Equal(t, int64(50), refused.Load())
		require.Equal(t, 500*time.Millisecond, time.Since(start), "all are refused at once")
		require.Equal(t, int64(50), g.Totals().Refused)
		require.Equal(t, limiter.Stats{Allowed: 20}, g.Stats())
		time.Sleep(500 * time.Millisecond)
		require.Equal(t, 1, g.Limiter().Take(0).Remaining, "they took no token")
	})
}

// The breaker may have closed again before the waiting call runs.
func TestWaitingCallIsRefusedEvenIfTheBreakerClosesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{Rate: limiter.PerMinute(1), Burst: 1, MaxWait: time.Hour})
		require.NoError(t, g.Run(t.Context(), succeed))
		var err error
		go func() { err = g.Run(t.Context(), succeed) }()
		synctest.Wait()
		g.Breaker().Force(breaker.ForcedOpen, "")
		g.Breaker().Release()
		synctest.Wait()
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.EqualValues(t, 1, g.Totals().Refused)
		require.Zero(t, g.Stats().Waiting)
	})
}

func TestCallsWaitPerKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := hosts(weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(1), Burst: 1, MaxWait: 3 * time.Second}})
		began := time.Now()
		var wg sync.WaitGroup
		for _, key := range []string{"a", "a", "a", "b"} {
			wg.Go(func() { _ = g.Get(key).Run(t.Context(), succeed) })
		}
		wg.Wait()
		require.Equal(t, 2*time.Second, time.Since(began))
		require.Equal(t, limiter.Stats{Allowed: 2, Waited: 2}, g.Stats())

		g.Get("b").Hold(10 * time.Second)
		require.ErrorIs(t, g.Get("b").Run(t.Context(), succeed), limiter.ErrLimited, "the wait would be longer than MaxWait")
	})
}

// Two calls wait when their key is forgotten. One gets the token of the new bucket, and the other
// is refused when the key's new breaker opens.
func TestWaitingCallIsRefusedByTheNextBreakerOfItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := hosts(weir.GroupConfig{Gate: weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 1, MaxWait: 3 * time.Hour}})
		require.NoError(t, g.Get("a").Run(bg(), succeed))
		began := time.Now()
		time.AfterFunc(time.Minute, func() { g.Forget("a") })
		time.AfterFunc(2*time.Minute, func() { g.Get("a").Breaker().OpenFor(time.Hour) })
		var errs [2]error
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = g.Get("a").Run(bg(), succeed) })
		}
		wg.Wait()
		require.Equal(t, 2*time.Minute, time.Since(began))
		require.ErrorIs(t, errors.Join(errs[:]...), breaker.ErrOpen)
		require.True(t, errs[0] == nil || errs[1] == nil)
		require.Equal(t, limiter.Stats{Allowed: 1, Waited: 1}, g.Stats())
	})
}

// A call that waits when its key is forgotten continues with the key's new limit.
func TestWaitingCallContinuesWhenItsKeyIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := hosts(weir.GroupConfig{Gate: weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 1, MaxWait: 3 * time.Hour}})
		require.NoError(t, g.Get("a").Run(bg(), succeed))
		began := time.Now()
		time.AfterFunc(time.Minute, func() { g.Forget("a") })
		require.NoError(t, g.Get("a").Run(bg(), succeed))
		require.Equal(t, time.Minute, time.Since(began))
		require.Equal(t, limiter.Stats{Allowed: 1, Waited: 1}, g.Stats())
	})
}

// waitingGates lists the kinds of gates whose calls can wait, each with one token per minute. Each
// is a function because a gate belongs to its bubble.
var waitingGates = map[string]func(maxWait time.Duration) func(caller int) *weir.Gate{
	"a gate": func(maxWait time.Duration) func(int) *weir.Gate {
		g := weir.New("g", weir.Config{Rate: limiter.PerMinute(1), Burst: 1, MaxWait: maxWait})
		return func(int) *weir.Gate { return g }
	},
	"a key": func(maxWait time.Duration) func(int) *weir.Gate {
		g := hosts(weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerMinute(1), Burst: 1, MaxWait: maxWait}})
		return func(int) *weir.Gate { return g.Get("a") }
	},
	"joined": func(maxWait time.Duration) func(int) *weir.Gate {
		bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerMinute(1), Burst: 1})
		g := weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Limiter: bucket, MaxWait: maxWait})
		return func(int) *weir.Gate { return g }
	},
	"joined, a remote": func(maxWait time.Duration) func(int) *weir.Gate {
		g := weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Remote: newRemote(1), MaxWait: maxWait})
		return func(int) *weir.Gate { return g }
	},
	"joined, a bucket and a remote": func(maxWait time.Duration) func(int) *weir.Gate {
		bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerMinute(2), Burst: 2})
		g := weir.Join("g", weir.Parts{
			Breaker: breaker.New("b", breaker.Config{}), Limiter: bucket, Remote: newRemote(1), MaxWait: maxWait,
		})
		return func(int) *weir.Gate { return g }
	},
	"keys without room": func(maxWait time.Duration) func(int) *weir.Gate {
		c := weir.GroupConfig{MaxKeys: 10, Gate: weir.Config{Rate: limiter.PerMinute(1), Burst: 1, MaxWait: maxWait}}
		g := weir.NewGroupWithBuckets[string]("hosts", c, 10)
		for i := range 10 {
			_ = g.Get(fmt.Sprint("known", i)).Run(bg(), succeed)
		}
		return func(caller int) *weir.Gate { return g.Get(fmt.Sprint("new", caller)) }
	},
}

func TestNoCallWaitsLongerThanMaxWait(t *testing.T) {
	for kind, gates := range waitingGates {
		for change, meanwhile := range map[string]func(g *weir.Gate){
			"nothing": func(*weir.Gate) {},
			"a hold":  func(g *weir.Gate) { g.Hold(time.Hour) },
			"two holds": func(g *weir.Gate) {
				g.Hold(30 * time.Second)
				time.Sleep(10 * time.Second)
				g.Hold(time.Hour)
			},
			"a slower rate": func(g *weir.Gate) {
				if b, ok := g.Limiter().(*limiter.TokenBucket); ok {
					require.NoError(t, b.SetRate(limiter.Per(1, time.Hour)))
				}
			},
		} {
			t.Run(kind+", "+change, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const maxWait = 100 * time.Second
					gate := gates(maxWait)
					var took [20]time.Duration
					var wg sync.WaitGroup
					for i := range took {
						wg.Go(func() {
							began := time.Now()
							_ = gate(i).Run(t.Context(), succeed)
							took[i] = time.Since(began)
						})
					}
					time.Sleep(time.Second)
					for i := range took {
						wg.Go(func() { meanwhile(gate(i)) })
					}
					wg.Wait()
					for _, d := range took {
						require.LessOrEqual(t, d, maxWait)
					}
				})
			})
		}
	}
}

// An error says that MaxWait was too short, and no other refusal names it.
func TestARefusalNamesMaxWait(t *testing.T) {
	for kind, gates := range waitingGates {
		synctest.Test(t, func(t *testing.T) {
			gate := gates(time.Second)
			_ = gate(0).Run(t.Context(), succeed)
			require.ErrorContains(t, gate(1).Run(t.Context(), succeed), ": MaxWait is 1s", kind)
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			require.NotContains(t, fmt.Sprint(gate(1).Run(ctx, succeed)), "MaxWait", kind)
			gate(1).Hold(time.Hour)
			require.ErrorContains(t, gate(1).Run(t.Context(), succeed), "the service asked to wait: MaxWait is 1s", kind)
			waiting := gates(time.Minute)
			_ = waiting(0).Run(t.Context(), succeed)
			got := make(chan error)
			go func() { got <- waiting(1).Run(t.Context(), succeed) }()
			synctest.Wait()
			waiting(1).Hold(time.Hour)
			require.ErrorContains(t, <-got, "the service asked to wait: MaxWait is 1m0s", kind)
			none := gates(0)
			_ = none(0).Run(t.Context(), succeed)
			require.NotContains(t, fmt.Sprint(none(1).Run(t.Context(), succeed)), "MaxWait", kind)
		})
	}
}

// A refusal names the MaxWait that was in effect, also if Reconfigure changes it.
func TestARefusalNamesTheMaxWaitInEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := weir.Config{MaxConcurrent: 1, MaxWait: time.Minute}
		g, release := occupiedGate(t, c)
		defer release()
		refused := func() <-chan error {
			got := make(chan error, 1)
			go func() { got <- g.Run(t.Context(), succeed) }()
			synctest.Wait()
			return got
		}
		reconfigure := func(maxWait time.Duration) {
			c.MaxWait = maxWait
			require.NoError(t, g.Reconfigure(c))
		}
		long := refused()
		time.Sleep(time.Second)
		reconfigure(10 * time.Second)
		require.ErrorContains(t, <-long, "(limit 1, MaxWait 10s)")
		short := refused()
		time.Sleep(time.Second)
		reconfigure(time.Minute)
		require.ErrorContains(t, <-short, "(limit 1, MaxWait 10s)")

		g.Hold(time.Hour)
		require.ErrorContains(t, <-refused(), ": MaxWait is 1m0s, ")
		reconfigure(time.Second)
		require.ErrorContains(t, <-refused(), ": MaxWait is 1s, ")
	})
}

func TestNoWaitingCallIsMadeDuringAHold(t *testing.T) {
	for kind, gates := range waitingGates {
		synctest.Test(t, func(t *testing.T) {
			gate := gates(5 * time.Minute)
			const held = 3 * time.Minute
			began := time.Now()
			var passed [5]time.Duration
			var wg sync.WaitGroup
			for i := range passed {
				wg.Go(func() {
					if gate(i).Run(t.Context(), succeed) == nil {
						passed[i] = time.Since(began)
					}
				})
			}
			synctest.Wait()
			time.Sleep(time.Second)
			for i := range passed {
				gate(i).Hold(held)
			}
			wg.Wait()
			sent := 0
			for _, at := range passed {
				require.True(t, at == 0 || at >= held+time.Second, "%s: one was sent after %v", kind, at)
				if at > 0 {
					sent++
				}
			}
			require.NotZero(t, sent, "%s: calls are made after the hold", kind)
		})
	}
}

// Ten calls hang in all slots, and one caller comes per second and waits. When the slots fall free,
// or the bound is removed, no more calls begin at one moment than the bucket has tokens.
func TestCallsThatWaitedForSlotsBeginAtTheRate(t *testing.T) {
	config := weir.Config{Rate: limiter.PerSecond(1), Burst: 1, MaxConcurrent: 10, MaxWait: time.Minute}
	for name, after := range map[string]func(g *weir.Gate, release func()){
		"the slots fall free": func(_ *weir.Gate, release func()) { release() },
		"the bound is removed": func(g *weir.Gate, _ func()) {
			c := config
			c.MaxConcurrent = 0
			require.NoError(t, g.Reconfigure(c))
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := weir.New("g", config)
			hang := make(chan struct{})
			release := sync.OnceFunc(func() { close(hang) })
			var mu sync.Mutex
			began := map[time.Duration]int{}
			start := time.Now()
			var all sync.WaitGroup
			for range 40 {
				all.Go(func() {
					_ = g.Run(bg(), func(context.Context) error {
						mu.Lock()
						began[time.Since(start)]++
						mu.Unlock()
						<-hang
						return nil
					})
				})
				time.Sleep(time.Second)
			}
			after(g, release)
			synctest.Wait()
			release()
			all.Wait()
			require.Len(t, began, 40, name)
			for at, n := range began {
				require.Equal(t, 1, n, "%s: calls that began at %s", name, at)
			}
		})
	}
}

// Calls wait for a slot, get one during a hold and give it back, and are made without one after
// Reconfigure has removed the bound. Their ends release no slot of the bound that is added again.
func TestAReleasedSlotIsNotReleasedAgain(t *testing.T) {
	bounded := weir.Config{MaxConcurrent: 1, MaxWait: 30 * time.Second}
	for _, grouped := range []bool{false, true} {
		t.Run(fmt.Sprint("group=", grouped), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := weir.New("g", bounded)
				reconfigure := g.Reconfigure
				if grouped {
					group := weir.NewGroup[string]("g", weir.GroupConfig{Gate: bounded})
					g, reconfigure = group.Get("k"), group.ReconfigureGates
				}
				var all sync.WaitGroup
				call := func(d time.Duration) {
					all.Go(func() {
						require.NoError(t, g.Run(bg(), func(context.Context) error { time.Sleep(d); return nil }))
					})
					synctest.Wait()
				}
				call(2 * time.Second)
				for range 20 {
					call(10 * time.Second)
				}
				time.Sleep(time.Second)
				g.Hold(2 * time.Second)
				time.Sleep(4 * time.Second)
				require.NoError(t, reconfigure(weir.Config{}))
				all.Wait()
				require.NoError(t, reconfigure(weir.Config{MaxConcurrent: 1}))
				require.Zero(t, callsInFlight(g))
				require.NoError(t, g.Run(bg(), succeed))
			})
		})
	}
}

// Calls that wait for a slot give up when their tokens have left the window. What they give back
// is not that of others.
func TestACallThatGivesUpLateGivesNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := inflight.New(inflight.Config{Limit: 10})
		log := limiter.NewSlidingLog(limiter.WindowConfig{Limit: 5, Window: 100 * time.Millisecond})
		g := weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Limiter: log, InFlight: slots, MaxWait: time.Second})
		busy := make([]inflight.Slot, 10)
		for i := range busy {
			busy[i], _ = slots.TryAcquire(t.Context())
		}
		var mu sync.Mutex
		began := 0
		start := func(ctx context.Context) {
			for range 5 {
				go func() {
					_ = g.Run(ctx, func(context.Context) error {
						mu.Lock()
						defer mu.Unlock()
						began++
						return nil
					})
				}()
			}
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(bg())
		start(ctx)
		time.Sleep(140 * time.Millisecond)
		start(bg())
		time.Sleep(10 * time.Millisecond)
		cancel()
		start(bg())
		for i := range busy {
			busy[i].Done(bg(), nil)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		made := func() int {
			mu.Lock()
			defer mu.Unlock()
			return began
		}
		require.Equal(t, 5, made(), "calls within a millisecond")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, 10, made())
	})
}

// A key without room is told so, whatever refuses it.
func TestARefusalOfAKeyWithoutRoomNamesMaxKeys(t *testing.T) {
	c := weir.GroupConfig{MaxKeys: 1, Gate: weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 1, MaxConcurrent: 1}}
	g := weir.NewGroupWithBuckets[int]("tenants", c, 1)
	require.NoError(t, g.Get(1).Run(bg(), succeed))
	permit, err := g.Get(2).Allow(bg())
	require.NoError(t, err)
	require.ErrorContains(t, g.Get(3).Run(bg(), succeed), "limiter tenants: no tokens left (limit 1), which all keys without room share: MaxKeys is 1, retry in ")
	permit.Record(bg(), nil, breaker.Success)

	keys := limiter.NewGroup(limiter.GroupConfig[int]{Rate: limiter.Per(1, time.Hour), Burst: 1, MaxKeys: 1})
	require.True(t, keys.Get(1).Take(1).OK)
	joined := weir.Join("joined", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Limiter: keys.Get(2)})
	require.ErrorContains(t, joined.Run(bg(), succeed), "limiter joined: no room for the key: MaxKeys is 1 (limit 1), retry in ")

	g = weir.NewGroup[int]("tenants", weir.GroupConfig{MaxKeys: 1, Gate: weir.Config{MaxConcurrent: 1}})
	require.NoError(t, g.Get(1).Run(bg(), succeed))
	permit, err = g.Get(2).Allow(bg())
	require.NoError(t, err)
	require.ErrorContains(t, g.Get(3).Run(bg(), succeed), `"tenants, of all keys without room: MaxKeys is 1" is full`)
	permit.Record(bg(), nil, breaker.Success)
}

func TestARefusalAfterAWaitOfAKeyWithoutRoomNamesMaxKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 1, MaxWait: time.Second}
		g := weir.NewGroupWithBuckets[int]("tenants", weir.GroupConfig{MaxKeys: 1, Gate: gate}, 1)
		require.NoError(t, g.Get(1).Run(bg(), succeed))
		require.NoError(t, g.Get(2).Run(bg(), succeed))
		require.EqualError(t, g.Get(3).Run(bg(), succeed),
			"limiter tenants: no tokens left: MaxWait is 1s (limit 1), which all keys without room share: MaxKeys is 1, retry in 1h0m0s")

		g = weir.NewGroup[int]("tenants", weir.GroupConfig{MaxKeys: 1, Gate: weir.Config{MaxConcurrent: 1, MaxWait: time.Second}})
		require.NoError(t, g.Get(1).Run(bg(), succeed))
		permit, err := g.Get(2).Allow(bg())
		require.NoError(t, err)
		require.ErrorContains(t, g.Get(3).Run(bg(), succeed),
			`"tenants, of all keys without room: MaxKeys is 1" had no slot within 1s (limit 1, MaxWait 1s)`)
		permit.Record(bg(), nil, breaker.Success)
	})
}

func TestEndedWaitsAreNotReferenced(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{Rate: limiter.PerSecond(10), Burst: 1, MaxWait: 150 * time.Millisecond})
		waiters := make([]weak.Pointer[[64]byte], 100)
		for i := range waiters {
			waiter := new([64]byte)
			ctx := context.WithValue(t.Context(), key{}, waiter)
			require.NoError(t, g.Run(ctx, func(context.Context) error { return nil }))
			waiters[i] = weak.Make(waiter)
		}
		synctest.Wait()
		runtime.GC()
		for _, w := range waiters {
			require.Nil(t, w.Value(), "the context of an ended call is not referenced")
		}
		runtime.KeepAlive(g)
	})
}

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
					permit.Record(bg(), nil, breaker.Success)
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

// A call that has waited leaves nothing behind that would keep its key in a full group.
func TestAKeyWhoseCallsHaveWaitedIsEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.NewGroup[string]("g", weir.GroupConfig{MaxKeys: 2, Gate: weir.Config{Rate: limiter.PerSecond(10), Burst: 1, MaxWait: time.Second}})
		for _, key := range []string{"a", "b"} {
			for range 3 {
				require.NoError(t, g.Get(key).Run(t.Context(), succeed))
			}
		}
		require.EqualValues(t, 4, g.Stats().Waited)
		time.Sleep(10 * time.Minute)
		require.NoError(t, g.Get("c").Run(t.Context(), succeed))
		known := map[string]bool{}
		for key := range g.All() {
			known[key] = true
		}
		require.True(t, known["c"], "%v", known)
	})
}

// In a bubble each call but the first waits, because its own time is 0.
func TestACallThatWaitsAllocatesLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{Rate: limiter.PerSecond(10), Burst: 1, MaxWait: time.Second})
		ctx := bg()
		require.NoError(t, g.Run(ctx, succeed))
		allocs := testing.AllocsPerRun(100, func() {
			if g.Run(ctx, succeed) != nil {
				panic("refused")
			}
		})
		require.LessOrEqual(t, allocs, 4.0)
		require.EqualValues(t, 101, g.Stats().Waited)
	})
}

// hangingRemote allows its first call, and then hangs for a minute.
type hangingRemote struct{ asked int }

func (r *hangingRemote) Take(ctx context.Context, _ int) (limiter.Result, error) {
	if r.asked++; r.asked == 1 {
		return limiter.Result{OK: true}, nil
	}
	return limiter.Result{OK: true}, r.Wait(ctx, 1)
}

func (*hangingRemote) Wait(ctx context.Context, _ int) error {
	select {
	case <-time.After(time.Minute):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A call that has waited for its token asks the remote. MaxWait and the breaker bound that too.
func TestARemoteThatHangsKeepsNoCallThatWaits(t *testing.T) {
	for opens, longest := range map[bool]time.Duration{true: 2 * time.Second, false: 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			g := weir.Join("g", weir.Parts{
				Breaker: breaker.New("b", breaker.Config{}), Remote: &hangingRemote{}, MaxWait: 3 * time.Second,
				Limiter: limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1}),
			})
			require.NoError(t, g.Run(t.Context(), succeed))
			if opens {
				time.AfterFunc(2*time.Second, func() { g.Breaker().Force(breaker.ForcedOpen, "") })
			}
			began := time.Now()
			_ = g.Run(t.Context(), succeed)
			require.Equal(t, longest, time.Since(began))
		})
	}
}

func TestAKeyWithoutRoomIsRefusedAtOnceThoughCallsMayWait(t *testing.T) {
	for name, deadline := range map[string]time.Duration{"short MaxWait": 0, "short deadline": 2 * time.Second} {
		for of, join := range map[string]func(l limiter.Limiter) limiter.Limiter{
			"key":   func(l limiter.Limiter) limiter.Limiter { return l },
			"Joint": func(l limiter.Limiter) limiter.Limiter { return limiter.NewJoint("", l) },
			"Joint of two": func(l limiter.Limiter) limiter.Limiter {
				return limiter.NewJoint("", l, limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(9)}))
			},
		} {
			t.Run(name+", "+of, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					keys := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.Per(1, 10*time.Second), Burst: 1, MaxKeys: 1})
					keys.Get("a").Take(1)
					ctx, maxWait := t.Context(), time.Second
					if deadline > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, deadline)
						defer cancel()
						maxWait = time.Minute
					}
					g := weir.Join("g", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Limiter: join(keys.Get("b")), MaxWait: maxWait})
					err := g.Run(ctx, succeed)
					limited, ok := errors.AsType[*limiter.LimitedError](err)
					require.True(t, ok, "%v", err)
					require.Equal(t, limiter.NoRoom, limited.Reason)
					require.Equal(t, 1, limited.MaxKeys)
					require.NotErrorIs(t, err, context.DeadlineExceeded)
				})
			})
		}
	}
}

// panickingRemote panics when a call waits for it.
type panickingRemote struct{}

func (panickingRemote) Take(context.Context, int) (limiter.Result, error) {
	return limiter.Result{RetryAfter: time.Millisecond}, nil
}
func (panickingRemote) Wait(context.Context, int) error { panic("remote") }

func TestARemoteThatPanicsLeavesNothingBehind(t *testing.T) {
	hosts := breaker.NewGroup[string]("hosts", breaker.GroupConfig{MaxKeys: 1})
	bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Hour), Burst: 1})
	g := weir.Join("g", weir.Parts{Breaker: hosts.Get("a"), Limiter: bucket, Remote: panickingRemote{}, MaxWait: time.Second})
	require.PanicsWithValue(t, "remote", func() { _ = g.Run(t.Context(), succeed) })
	require.Zero(t, g.Stats().Waiting)
	require.Equal(t, 1, bucket.Take(0).Remaining, "the token is back")
	hosts.Get("b") // evicts a, which is idle
	for key := range hosts.All() {
		require.Equal(t, "b", key)
	}
}

// userLimiter is a limiter of a user, with a Wait that looks at the deadline before it waits, or
// after.
type userLimiter struct {
	bucket *limiter.TokenBucket
	late   bool
}

func (l userLimiter) Take(n int) limiter.Result { return l.bucket.Take(n) }

func (l userLimiter) Wait(ctx context.Context, n int) error {
	if !l.late {
		return l.bucket.Wait(ctx, n)
	}
	for !l.bucket.Take(n).OK {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
	return nil
}

// userRemote is a userLimiter that is kept elsewhere.
type userRemote struct{ userLimiter }

func (r userRemote) Take(_ context.Context, n int) (limiter.Result, error) {
	return r.userLimiter.Take(n), nil
}

func TestMaxWaitBoundsTheWaitOfAUsersLimiter(t *testing.T) {
	for _, late := range []bool{false, true} {
		for name, join := range map[string]func(p *weir.Parts, l userLimiter){
			"limiter": func(p *weir.Parts, l userLimiter) { p.Limiter = l },
			"Joint":   func(p *weir.Parts, l userLimiter) { p.Limiter = limiter.NewJoint("", l) },
			"remote":  func(p *weir.Parts, l userLimiter) { p.Remote = userRemote{l} },
		} {
			t.Run(fmt.Sprintf("%s, late %t", name, late), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, 10*time.Second), Burst: 1})
					p := weir.Parts{Breaker: breaker.New("b", breaker.Config{}), MaxWait: 5 * time.Second}
					join(&p, userLimiter{bucket, late})
					g := weir.Join("g", p)
					require.NoError(t, g.Run(t.Context(), succeed))
					began := time.Now()
					hour, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					err := g.Run(hour, succeed)
					require.ErrorIs(t, err, limiter.ErrLimited)
					require.NotErrorIs(t, err, context.DeadlineExceeded)
					require.ErrorContains(t, err, "limiter g: no tokens left: MaxWait is 5s")
					require.Positive(t, weir.RetryAfter(err))
					require.Equal(t, late, time.Since(began) == 5*time.Second)

					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					err = g.Run(ctx, succeed)
					require.ErrorIs(t, err, context.DeadlineExceeded, "the deadline of the caller comes first")
					require.Equal(t, limiter.Stats{Allowed: 1, Refused: 1}, withoutDeadline(g.Stats(), late))

					time.Sleep(6*time.Second - time.Since(began))
					require.NoError(t, g.Run(t.Context(), succeed))
					require.LessOrEqual(t, time.Since(began), 11*time.Second)
				})
			})
		}
	}
}

// withoutDeadline returns s without the call whose deadline came first: a refusal that was known in
// time, or a cancelled call.
func withoutDeadline(s limiter.Stats, late bool) limiter.Stats {
	if late {
		s.Cancelled--
	} else {
		s.Refused--
	}
	s.Near = 0
	return s
}
