package fleet_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/limiter"
)

// testRates lists rates that divide a second evenly, and others.
var testRates = map[string]struct {
	fleet.TokenBucket
	cost *big.Rat // of a token, in µs
}{
	"10/s":       {fleet.TokenBucket{Rate: limiter.PerSecond(10), Burst: 5}, big.NewRat(100_000, 1)},
	"3/s":        {fleet.TokenBucket{Rate: limiter.PerSecond(3), Burst: 4}, big.NewRat(1_000_000, 3)},
	"7/min":      {fleet.TokenBucket{Rate: limiter.PerMinute(7), Burst: 10}, big.NewRat(60_000_000, 7)},
	"10/13s":     {fleet.TokenBucket{Rate: limiter.Per(10, 13*time.Second), Burst: 3}, big.NewRat(1_300_000, 1)},
	"1/3 a s":    {fleet.TokenBucket{Rate: limiter.PerSecond(1.0 / 3), Burst: 2}, big.NewRat(3_000_000, 1)},
	"0.1/s":      {fleet.TokenBucket{Rate: limiter.PerSecond(0.1), Burst: 2}, big.NewRat(10_000_000, 1)},
	"999983/s":   {fleet.TokenBucket{Rate: limiter.PerSecond(999_983), Burst: 100}, big.NewRat(1_000_000, 999_983)},
	"3000000/s":  {fleet.TokenBucket{Rate: limiter.PerSecond(3_000_000), Burst: 1000}, big.NewRat(1, 3)},
	"4/ns":       {fleet.TokenBucket{Rate: limiter.Per(4, 1), Burst: 1 << 30}, big.NewRat(1, 4000)},
	"1000/h":     {fleet.TokenBucket{Rate: limiter.Per(1000, time.Hour), Burst: 1000}, big.NewRat(3_600_000, 1)},
	"one in 7ns": {fleet.TokenBucket{Rate: limiter.Per(1, 7), Burst: 1 << 20}, big.NewRat(7, 1000)},
}

func TestTokenCost(t *testing.T) {
	for name, r := range testRates {
		whole, part, parts := r.TokenCost()
		cost := new(big.Rat).Add(big.NewRat(whole, 1), big.NewRat(part, parts))
		require.Equal(t, r.cost, cost, name)
	}
}

// If Lua cannot represent the cost of a token exactly, it is rounded up. (A rate that is not a
// simple ratio is accurate to a part in 10^12, as in local limiters.)
func TestATokenNeverCostsLess(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		per := time.Duration(1 + random.Int64N(int64(time.Second)))
		events := math.Exp(random.Float64()*40 - 10)
		b := fleet.TokenBucket{Rate: limiter.Per(events, per), Burst: 1 + int(random.Int64N(1<<(1+random.IntN(40))))}
		if fleet.Check(b) != nil {
			continue
		}
		whole, part, parts := b.TokenCost()
		require.Less(t, part, parts)
		require.Positive(t, whole+part, "%+v", b)
		require.LessOrEqual(t, float64(parts)*float64(b.Burst+1), float64(1<<53), "%+v", b)
		got, _ := new(big.Rat).Add(big.NewRat(whole, 1), big.NewRat(part, parts)).Float64()
		exact := float64(per) / 1000 / events
		require.InDelta(t, exact, got, 1/float64(parts)+1e-12*exact, "%+v costs %d+%d/%d", b, whole, part, parts)
		require.GreaterOrEqual(t, got, exact*(1-1e-12), "%+v costs %d+%d/%d", b, whole, part, parts)
	}
}

// oracle is a token bucket in exact fractions, stored as the time in µs at which it is full.
type oracle struct {
	cost, full *big.Rat
	burst      int64
}

func (o *oracle) take(now int64, n int64) limiter.Result {
	at := big.NewRat(now, 1)
	start := o.full
	late := new(big.Rat).Sub(at, start)
	if late.Sign() > 0 && (o.cost.IsInt() || late.Cmp(big.NewRat(1, 1)) > 0) {
		// within the µs it counts from where it was full
		start = at
	}
	most := new(big.Rat).Add(at, o.times(o.burst))
	next := new(big.Rat).Add(start, o.times(min(n, o.burst)))
	r := limiter.Result{Limit: int(o.burst), OK: n <= o.burst && next.Cmp(most) <= 0}
	switch {
	case r.OK:
		if n > 0 {
			o.full = next
		}
		start = next
	case n > o.burst:
		r.RetryAfter = limiter.Never
	default:
		r.RetryAfter = time.Duration(ceil(new(big.Rat).Sub(next, most))) * us
	}
	r.ResetAfter = time.Duration(max(ceil(new(big.Rat).Sub(start, at)), 0)) * us
	room := new(big.Rat).Quo(new(big.Rat).Sub(most, start), o.cost)
	r.Remaining = int(min(new(big.Int).Div(room.Num(), room.Denom()).Int64(), o.burst))
	return r
}

func (o *oracle) times(n int64) *big.Rat { return new(big.Rat).Mul(o.cost, big.NewRat(n, 1)) }

func ceil(r *big.Rat) int64 {
	q, rest := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		return q.Int64() + 1
	}
	return q.Int64()
}

func TestTokenBucketIsExact(t *testing.T) {
	l := connect(t)
	for name, r := range testRates {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newLimiter(l, "exact "+name, r.TokenBucket, errorOnOutage)
			for seed := range uint64(3) {
				random := rand.New(rand.NewPCG(seed, 0))
				key, now := newKey(), testStart.UnixMicro()
				o := &oracle{cost: r.cost, full: big.NewRat(now, 1), burst: int64(r.Burst)}
				token, _ := r.cost.Float64()
				for range 150 {
					now += int64(random.Float64() * random.Float64() * token * 4 * float64(1+random.IntN(1+r.Burst/4)))
					n := random.IntN(3)
					if random.IntN(4) == 0 {
						n = random.IntN(r.Burst + 2)
					}
					got, err := b.TakeAt(t.Context(), time.UnixMicro(now), key, n)
					require.NoError(t, err)
					require.Equal(t, o.take(now, int64(n)), got.Result, "Take(%d) at %d", n, now)
				}
			}
		})
	}
}

// A caller at the exact rate, rounded up to microseconds, is never refused. A caller a microsecond
// earlier is refused.
func TestCallersAtTheExactRateAreNeverRefused(t *testing.T) {
	l := connect(t)
	for name, r := range testRates {
		if r.Burst > 100 {
			continue
		}
		r.Burst = 1
		b := newLimiter(l, "cadence "+name, r.TokenBucket, errorOnOutage)
		o := oracle{cost: r.cost}
		take := func(key string, micros int64) bool {
			got, err := b.TakeAt(t.Context(), testStart.Add(time.Duration(micros)*us), key, 1)
			require.NoError(t, err)
			return got.OK
		}
		for i := range int64(300) {
			due := ceil(o.times(i))
			if i > 0 {
				require.False(t, take("user", due-1), "%s, call %d is early", name, i)
			}
			require.True(t, take("user", due), "%s, call %d", name, i)
			require.True(t, take("other", ceil(o.times(i*7))), "%s, call %d, one in seven", name, i)
		}
	}
}

func TestAChangedRateKeepsTheTokens(t *testing.T) {
	l := connect(t)
	take := func(r limiter.Rate, burst, n int, at time.Duration) limiter.Result {
		b := newLimiter(l, "changed", fleet.TokenBucket{Rate: r, Burst: burst}, errorOnOutage)
		got, err := b.TakeAt(t.Context(), testStart.Add(at), "user", n)
		require.NoError(t, err)
		return got.Result
	}
	require.Equal(t, allowedResult(100, 40, 60*time.Hour), take(limiter.Per(1, time.Hour), 100, 60, 0))
	require.Equal(t, allowedResult(100, 40, 6*time.Second), take(limiter.PerSecond(10), 100, 0, 0), "60 tokens are missing and return at ten per second")
	require.Equal(t, allowedResult(100, 39, 6100*ms), take(limiter.PerSecond(10), 100, 1, 0))
	require.Equal(t, refusedResult(20, 0, 100*ms, 2*time.Second), take(limiter.PerSecond(10), 20, 1, 4100*ms))
}

// All nodes together get what one limiter grants. Their clocks do not matter.
func TestNodesTogetherGetNoMoreThanTheLimit(t *testing.T) {
	const nodes, burst = 5, 50
	var allowed atomic.Int64
	var all sync.WaitGroup
	for range nodes {
		b := newLimiter(connect(t), "together", fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: burst}, errorOnOutage)
		for range 4 {
			all.Go(func() {
				for range burst {
					r, err := b.Take(t.Context(), "user", 1)
					if err == nil && r.OK {
						allowed.Add(1)
					}
				}
			})
		}
	}
	all.Wait()
	require.Equal(t, int64(burst), allowed.Load())
}

// Scenario L53.
func TestABucketOfTenPerSecond(t *testing.T) {
	l := connect(t)
	b := newLimiter(l, "ten", fleet.TokenBucket{Rate: limiter.PerSecond(10), Burst: 10}, errorOnOutage)
	take := func(n int, want limiter.Result) {
		t.Helper()
		r, err := b.TakeAt(t.Context(), testStart, "user", n)
		require.NoError(t, err)
		require.Equal(t, want, r.Result)
	}
	take(0, allowedResult(10, 10, 0))
	require.Zero(t, newClient(t, sharedServer()).Exists(t.Context(), b.StateKeys("user")...).Val(), "a request for 0 stores nothing")
	take(1, allowedResult(10, 9, 100*ms))
	require.NoError(t, b.Reset(t.Context(), "user"))
	take(1, allowedResult(10, 9, 100*ms))
	take(2, allowedResult(10, 7, 300*ms))
	take(7, allowedResult(10, 0, time.Second))
	take(1000, refusedResult(10, 0, limiter.Never, time.Second))
}

// Scenario L56.
func TestEveryBucketHasATimeToLive(t *testing.T) {
	direct := newClient(t, sharedServer())
	for _, b := range []fleet.TokenBucket{{Rate: limiter.PerSecond(100), Burst: 10}, {Rate: limiter.Per(1, ms), Burst: 1}} {
		bucket := newLimiter(connect(t), newKey(), b, errorOnOutage)
		for range 50 {
			r, err := bucket.Take(t.Context(), "user", 1)
			require.NoError(t, err)
			left := direct.PTTL(t.Context(), bucket.StateKeys("user")[0]).Val()
			require.NotEqual(t, time.Duration(-1), left, "the key has no time to live")
			require.LessOrEqual(t, left, r.ResetAfter+time.Second)
		}
	}
}
