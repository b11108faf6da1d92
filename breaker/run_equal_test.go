package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/window"
)

// runConfigs are configs that need different work for a success.
var runConfigs = map[string]breaker.Config{
	"default":              {},
	"slow calls":           {SlowCall: 100 * time.Millisecond, SlowRate: 0.2, MinCalls: 5},
	"latency":              {Latency: true},
	"a trip by successes":  {Trip: func(c window.Counts) (string, bool) { return "nine", c.Successes%10 == 9 }},
	"shared counts":        {SharedCounts: func() window.Counts { return window.Counts{Successes: 9, Failures: 1} }, FailureRate: 0.1},
	"a classifier":         {Classify: onlyNilFails},
	"shadow":               {Force: breaker.Shadow},
	"consecutive failures": {ConsecutiveFailures: 2, Cooldown: time.Second},
	"the last calls":       {LastCalls: 10, MinCalls: 5},
}

// onlyNilFails is a classifier that takes errors for successes.
func onlyNilFails(err error) breaker.Outcome {
	if err == nil {
		return breaker.Failure
	}
	return breaker.Success
}

// runForms are the ways to make a call that have a separate code path for the common case.
var runForms = []func(ctx context.Context, b *breaker.Breaker, after time.Duration, fn func(context.Context) error) error{
	func(ctx context.Context, b *breaker.Breaker, _ time.Duration, fn func(context.Context) error) error {
		return b.Run(ctx, fn)
	},
	func(ctx context.Context, b *breaker.Breaker, _ time.Duration, fn func(context.Context) error) error {
		_, err := breaker.Do(ctx, b, func(ctx context.Context) (int, error) { return 1, fn(ctx) })
		return err
	},
	func(ctx context.Context, b *breaker.Breaker, after time.Duration, fn func(context.Context) error) error {
		permit, err := b.Allow()
		if err != nil {
			return err
		}
		permit.SetRetryAfter(after)
		return permit.Run(ctx, fn)
	},
}

// changesDuringCall are changes that are made to a breaker during a call.
var changesDuringCall = append(slices.Repeat([]func(*breaker.Breaker){func(*breaker.Breaker) {}}, 40),
	(*breaker.Breaker).Reset, (*breaker.Breaker).Release,
	func(b *breaker.Breaker) { b.OpenFor(100 * time.Millisecond) },
	func(b *breaker.Breaker) { b.Force(breaker.Shadow, "") },
)

// TestRunCountsAsAllowAndDone makes the same calls with two breakers. With one breaker it uses Run,
// Do or Permit.Run, and with the other Allow and Done.
func TestRunCountsAsAllowAndDone(t *testing.T) {
	for name, c := range runConfigs {
		for _, grouped := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, grouped %t", name, grouped), func(t *testing.T) {
				for seed := range testenv.Repeat(100, 2) {
					synctest.Test(t, func(t *testing.T) { runBoth(t, c, grouped, rand.New(rand.NewPCG(uint64(seed), 1))) })
				}
			})
		}
	}
}

func runBoth(t *testing.T, c breaker.Config, grouped bool, r *rand.Rand) {
	ran, done := breaker.New("b", c), breaker.New("b", c)
	if grouped {
		get := func() *breaker.Breaker { return breaker.NewGroup[int]("g", breaker.GroupConfig{Breaker: c}).Get(1) }
		ran, done = get(), get()
	}
	failing := 0.05
	for range 200 {
		if r.IntN(40) == 0 {
			failing = r.Float64()
		}
		time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
		way, after, took := r.IntN(len(runForms)), time.Duration(0), time.Duration(r.IntN(120))*time.Millisecond
		if way == 2 && r.IntN(10) == 0 {
			after = 20 * time.Second
		}
		result := error(nil)
		if r.Float64() < failing {
			result = errors.New("down")
		}
		change := changesDuringCall[r.IntN(len(changesDuringCall))]
		permit, refusal := done.Allow()
		err := runForms[way](t.Context(), ran, after, func(context.Context) error {
			time.Sleep(took)
			if refusal == nil {
				change(done)
				change(ran)
			}
			return result
		})
		if refusal == nil {
			require.Equal(t, result, err)
			permit.SetRetryAfter(after)
			permit.Done(t.Context(), result)
		} else {
			require.EqualError(t, err, refusal.Error())
		}
		require.Equal(t, done.State(), ran.State())
		require.Equal(t, done.Counts(), ran.Counts())
		require.Equal(t, done.Totals(), ran.Totals())
		require.Equal(t, done.LifetimeLatency(), ran.LifetimeLatency())
		require.Equal(t, done.Explain(), ran.Explain())
	}
}
