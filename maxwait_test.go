package weir_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

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
		g := hosts(weir.GroupConfig{MaxKeys: 10, Gate: weir.Config{Rate: limiter.PerMinute(1), Burst: 1, MaxWait: maxWait}})
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
