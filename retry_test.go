package weir_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

func retry(g *weir.Gate) error { return g.Run(weir.WithAttempt(bg(), 1), succeed) }

func requireNoRetries(t *testing.T, err error) {
	t.Helper()
	_, ok := errors.AsType[*weir.RetryError](err)
	require.True(t, ok, "%v", err)
	require.ErrorIs(t, err, weir.ErrRefused)
	require.Equal(t, limiter.Never, weir.RetryAfter(err))
}

func TestAttempt(t *testing.T) {
	require.Zero(t, weir.Attempt(bg()))
	require.Equal(t, 3, weir.Attempt(weir.WithAttempt(bg(), 3)))
	require.Zero(t, weir.Attempt(weir.WithAttempt(bg(), -3)))
	require.Zero(t, weir.Attempt(weir.WithAttempt(weir.WithAttempt(bg(), 3), 0)))
}

func TestRetriesAreAShareOfFirstCalls(t *testing.T) {
	shared := weir.NewRetryBudget("both", weir.RetryBudgetConfig{Share: 0.25, Burst: 2})
	joined := func() *weir.Gate {
		return weir.Join("joined", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Retries: shared})
	}
	one, other := joined(), joined()
	group := weir.NewGroup[string]("keys", weir.GroupConfig{Gate: weir.Config{RetryShare: 0.25, RetryBurst: 2, Rate: limiter.PerSecond(1000)}})
	for name, gates := range map[string][2]*weir.Gate{
		"gate":       [2]*weir.Gate(twice(weir.New("gate", weir.Config{RetryShare: 0.25, RetryBurst: 2}))),
		"two gates":  {one, other},
		"key":        [2]*weir.Gate(twice(group.Get("a"))),
		"other key":  [2]*weir.Gate(twice(group.Get("b"))),
		"with slots": [2]*weir.Gate(twice(weir.New("gate", weir.Config{RetryShare: 0.25, RetryBurst: 2, MaxConcurrent: 1}))),
	} {
		first, second := gates[0], gates[1]
		for range 2 {
			require.NoError(t, retry(first), name)
		}
		requireNoRetries(t, retry(second))
		for i := range 8 {
			require.NoError(t, first.Run(bg(), succeed), name)
			if i%4 == 3 {
				require.NoError(t, retry(second), name)
			}
			requireNoRetries(t, retry(first))
		}
		for range 100 {
			require.NoError(t, first.Run(bg(), succeed), name)
		}
		for range 2 {
			require.NoError(t, retry(first), name)
		}
		requireNoRetries(t, retry(first))
	}
	require.Equal(t, window.Totals{Successes: 108, Failures: 6, Refused: 10}, one.Retries().Totals())
	require.Equal(t, window.Totals{Successes: 216, Failures: 12, Refused: 20}, group.Get("a").Retries().Totals(), "of all keys")
}

func twice(g *weir.Gate) []*weir.Gate { return []*weir.Gate{g, g} }

func TestTheErrorOfARetry(t *testing.T) {
	g := weir.New("payments", weir.Config{RetryShare: 0.1, RetryBurst: 1})
	require.NoError(t, retry(g))
	err := retry(g)
	require.EqualError(t, err, `retry budget "payments" is used up: it allows 0.1 retries per first call`)
	require.NotErrorIs(t, err, breaker.ErrOpen)
	require.NoError(t, g.Run(bg(), succeed), "first calls are not bounded")
}

// A call that is not made adds nothing and takes nothing.
func TestOnlyCallsThatAreMadeCountForRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{})
		budget := weir.NewRetryBudget("budget", weir.RetryBudgetConfig{Share: 1, Burst: 1})
		bound := inflight.New(inflight.Config{Limit: 1, Name: "bound"})
		g := weir.Join("g", weir.Parts{Breaker: b, Retries: budget, InFlight: bound})
		require.ErrorIs(t, g.Run(bg(), func(context.Context) error { return retry(g) }), inflight.ErrFull)
		require.Equal(t, window.Totals{Successes: 1}, budget.Totals())
		b.Force(breaker.ForcedOpen, "")
		require.ErrorIs(t, retry(g), breaker.ErrOpen)
		require.ErrorIs(t, g.Run(bg(), succeed), breaker.ErrOpen)
		b.Release()
		require.NoError(t, retry(g), "the token is still there")
		requireNoRetries(t, retry(g))
		require.Equal(t, window.Totals{Successes: 1, Failures: 1, Refused: 1}, budget.Totals())
		g.Hold(time.Second)
		require.ErrorIs(t, g.Run(bg(), succeed), limiter.ErrLimited)
		time.Sleep(2 * time.Second)
		requireNoRetries(t, retry(g))
	})
}

// opening is a limiter during whose decision the breaker opens.
type opening struct {
	limiter.Limiter
	breaker *breaker.Breaker
}

func (o opening) Take(n int) limiter.Result {
	o.breaker.Force(breaker.ForcedOpen, "")
	return o.Limiter.Take(n)
}

func TestARetryThatTheBreakerRefusesLastTakesNothing(t *testing.T) {
	b := breaker.New("b", breaker.Config{})
	budget := weir.NewRetryBudget("budget", weir.RetryBudgetConfig{Share: 1, Burst: 1})
	opens := weir.Join("g", weir.Parts{Breaker: b, Retries: budget, Limiter: opening{bucketOf(10), b}})
	require.ErrorIs(t, retry(opens), breaker.ErrOpen)
	b.Release()
	require.ErrorIs(t, opens.Run(bg(), succeed), breaker.ErrOpen)
	b.Release()
	require.Zero(t, budget.Totals())
	g := weir.Join("g", weir.Parts{Breaker: b, Retries: budget})
	require.NoError(t, retry(g))
	requireNoRetries(t, retry(g))
}

func TestReconfigureTheRetryBudget(t *testing.T) {
	config := weir.Config{RetryShare: 1, RetryBurst: 5}
	gate, group := weir.New("g", config), hosts(weir.GroupConfig{Gate: config})
	for name, reconfigure := range map[string]func(weir.Config) error{
		"gate":  gate.Reconfigure,
		"group": func(c weir.Config) error { return group.Reconfigure(weir.GroupConfig{Gate: c}) },
	} {
		g := gate
		if name == "group" {
			g = group.Get("a")
		}
		require.NoError(t, retry(g), name)
		require.NoError(t, reconfigure(weir.Config{RetryShare: 1, RetryBurst: 2}))
		for range 2 {
			require.NoError(t, retry(g), name)
		}
		requireNoRetries(t, retry(g))
		require.NoError(t, reconfigure(weir.Config{}))
		require.Nil(t, g.Retries())
		require.NoError(t, retry(g), name)
		require.NoError(t, g.Run(bg(), succeed))
		require.NoError(t, reconfigure(config))
		requireNoRetries(t, retry(g))
		for range 10 {
			require.NoError(t, g.Run(bg(), succeed))
		}
		for range 5 {
			require.NoError(t, retry(g), name)
		}
		requireNoRetries(t, retry(g))
	}
}

func TestKeysWithoutRoomShareARetryBudget(t *testing.T) {
	group := hosts(weir.GroupConfig{MaxKeys: 1, Gate: weir.Config{RetryShare: 0.1, RetryBurst: 1}})
	permit, err := group.Get("a").Allow(bg())
	require.NoError(t, err)
	defer permit.Record(bg(), nil, breaker.Ignored)
	require.NoError(t, retry(group.Get("a")))
	require.NoError(t, retry(group.Get("b")))
	for _, key := range []string{"a", "b", "c", "d"} {
		requireNoRetries(t, retry(group.Get(key)))
	}
}

func TestInvalidRetryBudgets(t *testing.T) {
	for _, c := range []struct {
		share float64
		burst int
		want  string
	}{
		{0.1, 0, ""},
		{1, 1_000_000, ""},
		{0.001, 1, ""},
		{math.NaN(), 1, "Share is NaN, must be between 0.001 and 1"},
		{-0.1, 1, "Share is -0.1, must be between 0.001 and 1"},
		{1.1, 1, "Share is 1.1, must be between 0.001 and 1"},
		{math.Inf(1), -1, "Share is +Inf, must be between 0.001 and 1\nweir: RetryBurst is -1, must be between 1 and 1000000"},
		{0.1, 1_000_001, "Burst is 1000001, must be between 1 and 1000000"},
	} {
		err := weir.Config{RetryShare: c.share, RetryBurst: c.burst}.Validate()
		shared := weir.RetryBudgetConfig{Share: c.share, Burst: c.burst}.Validate()
		if c.want == "" {
			require.NoError(t, err)
			require.NoError(t, shared)
			continue
		}
		require.EqualError(t, err, "weir: Retry"+c.want)
		require.Error(t, shared)
		require.PanicsWithError(t, shared.Error(), func() { weir.NewRetryBudget("b", weir.RetryBudgetConfig{Share: c.share, Burst: c.burst}) })
	}
	require.EqualError(t, weir.Config{RetryBurst: 1}.Validate(), "weir: RetryBurst is 1, must be 0 without a RetryShare")
	require.NoError(t, weir.RetryBudgetConfig{}.Validate())
}

func TestRetriesAreExportedAndCanBeAlertedOn(t *testing.T) {
	group := hosts(weir.GroupConfig{Gate: weir.Config{RetryShare: 0.1, RetryBurst: 1}})
	gate := weir.New("gate", weir.Config{RetryShare: 0.1, RetryBurst: 1})
	budget := weir.NewRetryBudget("shared", weir.RetryBudgetConfig{Burst: 1})
	joined := weir.Join("joined", weir.Parts{Breaker: breaker.New("b", breaker.Config{}), Retries: budget})
	for _, g := range []*weir.Gate{gate, joined, group.Get("a"), group.Get("b")} {
		require.NoError(t, g.Run(bg(), succeed))
		require.NoError(t, retry(g))
		requireNoRetries(t, retry(g))
	}
	for name, source := range map[string]interface {
		Totals() window.Totals
	}{"gate": gate.Retries(), "shared": budget, "group": group.Get("a").Retries()} {
		totals := source.Totals()
		require.Equal(t, totals.Successes, totals.Failures, name)
		require.Equal(t, totals.Successes, totals.Refused, name)
	}
	for range group.Observe {
	}
	for source, calls := range map[interface {
		Observe(yield func(*stat.Series, float64) bool)
	}]float64{gate: 1, joined: 1, budget: 1, group: 2} {
		found := 0
		for s, v := range source.Observe {
			if s.Instrument.Name == "weir.retry.calls" {
				found++
				require.Equal(t, calls, v, s.Values)
			}
		}
		require.Equal(t, 3, found)
	}
	_ = alert.FailureRate(gate.Retries(), time.Minute)
}

// callMade is a call that a gate has allowed.
type callMade struct {
	at    moment
	retry bool
}

// moment is a time, and how often the test had waited until all calls were made or wait. Calls that
// a gate allows at one moment begin in any order.
type moment struct {
	since time.Duration
	waits int64
}

// requireBound checks that in any span, retries are at most burst and share of the first calls.
func requireBound(t *testing.T, calls []callMade, share float64, burst int) (retries int) {
	t.Helper()
	for i, from := range calls {
		if !from.retry {
			continue
		}
		retries++
		firsts, retries := 0, 0
		for j := i - 1; j >= 0 && calls[j].at == from.at; j-- {
			if !calls[j].retry {
				firsts++
			}
		}
		for j, c := range calls[i:] {
			if c.retry {
				retries++
			} else {
				firsts++
			}
			if next := i + j + 1; next < len(calls) && calls[next].at == c.at {
				continue
			}
			if float64(retries) > float64(burst)+share*float64(firsts)+1e-9 {
				t.Fatalf("%d retries from %v to %v, and %d first calls: share %v, burst %d", retries, from.at.since, c.at.since, firsts, share, burst)
			}
		}
	}
	return retries
}

// Whatever the load, and however calls wait, fail and are refused by the other parts: in any span
// between two calls, retries are at most RetryBurst and RetryShare of the first calls.
func TestRetriesInAnySpan(t *testing.T) {
	retries := 0
	for seed := range uint64(150) {
		rnd := rand.New(rand.NewPCG(seed, 44))
		share, burst := 0.01+rnd.Float64()*rnd.Float64(), 1+rnd.IntN(8)
		config := weir.Config{RetryShare: share, RetryBurst: burst}
		if rnd.IntN(2) == 0 {
			config.Rate, config.MaxConcurrent = limiter.PerSecond(20), 1+rnd.IntN(4)
			config.MaxWait = time.Duration(rnd.IntN(2000)) * time.Millisecond
		}
		synctest.Test(t, func(t *testing.T) {
			g := weir.New("g", config)
			began := time.Now()
			var mu sync.Mutex
			var calls []callMade
			var waits atomic.Int64
			var wg sync.WaitGroup
			for range 400 {
				if rnd.IntN(4) == 0 {
					time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond)
				}
				isRetry, fails, number := rnd.IntN(2) == 0, rnd.IntN(4) == 0, 1+rnd.IntN(3)
				takes := time.Duration(rnd.IntN(100)) * time.Millisecond
				wg.Go(func() {
					ctx := bg()
					if isRetry {
						ctx = weir.WithAttempt(ctx, number)
					}
					_ = g.Run(ctx, func(context.Context) error {
						mu.Lock()
						calls = append(calls, callMade{moment{time.Since(began), waits.Load()}, isRetry})
						mu.Unlock()
						time.Sleep(takes)
						if fails {
							return errDown
						}
						return nil
					})
				})
				if rnd.IntN(2) == 0 {
					synctest.Wait()
					waits.Add(1)
				}
			}
			wg.Wait()
			retries += requireBound(t, calls, share, burst)
		})
	}
	require.Greater(t, retries, 1000)
}

// Retries that wait together begin together. So they need their tokens when they begin.
func TestRetriesThatWaitTakeTheirTokensAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := weir.NewRetryBudget("b", weir.RetryBudgetConfig{Share: 1, Burst: 2})
		full := inflight.New(inflight.Config{Limit: 100})
		busy := weir.Join("busy", weir.Parts{Breaker: breaker.New("busy", breaker.Config{}), Retries: budget, InFlight: full, MaxWait: time.Hour})
		idle := weir.Join("idle", weir.Parts{Breaker: breaker.New("idle", breaker.Config{}), Retries: budget})
		var slots [100]inflight.Slot
		for i := range slots {
			var err error
			slots[i], err = full.TryAcquire(bg())
			require.NoError(t, err)
		}
		var made, refused atomic.Int64
		for range 10 {
			for range 2 {
				go func() {
					if retry(busy) == nil {
						made.Add(1)
					} else {
						refused.Add(1)
					}
				}()
			}
			synctest.Wait()
			for range 2 {
				require.NoError(t, idle.Run(bg(), succeed))
			}
			time.Sleep(time.Second)
		}
		for i := range slots {
			slots[i].Done(bg(), nil)
		}
		synctest.Wait()
		require.Equal(t, []int64{2, 18}, []int64{made.Load(), refused.Load()})
	})
}

// However many goroutines call: the numbers of all calls keep the bound, and no token is lost.
func TestRetriesUnderLoad(t *testing.T) {
	const burst = 50
	budget := weir.NewRetryBudget("b", weir.RetryBudgetConfig{Share: 0.25, Burst: burst})
	gates := []*weir.Gate{
		weir.Join("one", weir.Parts{Breaker: breaker.New("one", breaker.Config{}), Retries: budget}),
		weir.Join("two", weir.Parts{Breaker: breaker.New("two", breaker.Config{}), Retries: budget, InFlight: inflight.New(inflight.Config{Limit: 2})}),
	}
	var firsts, retries, refused atomic.Int64
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(7, uint64(w)))
			for range 5000 {
				g := gates[rnd.IntN(2)]
				if rnd.IntN(2) == 0 {
					if g.Run(bg(), succeed) == nil {
						firsts.Add(1)
					}
					continue
				}
				err := retry(g)
				if _, ok := errors.AsType[*weir.RetryError](err); ok {
					refused.Add(1)
				} else if err == nil {
					retries.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, window.Totals{Successes: firsts.Load(), Failures: retries.Load(), Refused: refused.Load()}, budget.Totals())
	require.LessOrEqual(t, retries.Load(), burst+firsts.Load()/4)
	require.Greater(t, retries.Load(), firsts.Load()/5, "tokens are not lost")
}
