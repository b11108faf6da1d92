package limiter_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
)

// The estimate is the exact quantile of the costs that count, or up to 9 % above.
func TestEstimatesAgainstSortedCosts(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			q := 1 - random.Float64()
			e := limiter.NewEstimates[int](limiter.EstimatesConfig{Quantile: q, First: 7, Window: time.Minute})
			type recorded struct {
				window int
				cost   int
			}
			var all [2][]recorded
			var began [2]time.Time
			for range 300 {
				time.Sleep(time.Duration(random.IntN(3000)) * ms)
				key := random.IntN(2)
				if len(all[key]) == 0 {
					began[key] = time.Now()
				}
				cost := int(math.Exp(random.Float64()*20)) - 1
				window := int(time.Since(began[key]) / time.Minute)
				all[key] = append(all[key], recorded{window, cost})
				e.Record(key, cost)
				var counted []int
				for _, r := range all[key] {
					if r.window >= window-1 {
						counted = append(counted, r.cost)
					}
				}
				slices.Sort(counted)
				exact := max(counted[int(math.Ceil(q*float64(len(counted))))-1], 1)
				require.GreaterOrEqual(t, e.Of(key), exact)
				require.LessOrEqual(t, float64(e.Of(key)), float64(exact)*math.Exp2(1./8))
			}
			time.Sleep(2 * time.Minute)
			require.Equal(t, 7, e.Of(0), "no cost counts any more")
		})
	}
}

func TestEstimatesOfUnusualCosts(t *testing.T) {
	e := limiter.NewEstimates[string](limiter.EstimatesConfig{Quantile: 1, First: 100, Most: 500})
	require.Equal(t, 100, e.Of("a"))
	for _, c := range []struct{ cost, want int }{{-5, 1}, {0, 1}, {1, 1}, {2, 2}, {3, 3}, {11, 11}, {256, 256}, {499, 500}, {math.MaxInt, 500}} {
		e.Record("a", c.cost)
		require.Equal(t, c.want, e.Of("a"), c.cost)
	}
	require.Equal(t, 100, e.Of("b"))
	unbounded := limiter.NewEstimates[float64](limiter.EstimatesConfig{Quantile: 0.5, First: 100, MaxKeys: 1})
	unbounded.Record(math.NaN(), 5)
	require.Equal(t, 100, unbounded.Of(math.NaN()))
	unbounded.Record(1, math.MaxInt)
	require.Greater(t, unbounded.Of(1), math.MaxInt/3)
}

// Keys beyond MaxKeys have the first estimate, until a key has no costs that count.
func TestEstimatesOfManyKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := limiter.NewEstimates[int](limiter.EstimatesConfig{Quantile: 0.5, First: 100, MaxKeys: 10, Window: time.Minute})
		for key := range 20 {
			e.Record(key, 5)
			require.Equal(t, key >= 10, e.Of(key) == 100)
		}
		time.Sleep(2 * time.Minute)
		for key := range 10 {
			e.Record(100+key, 6)
			require.Equal(t, 6, e.Of(100+key))
		}
		require.Equal(t, 100, e.Of(1))
	})
	e := limiter.NewEstimates[int](limiter.EstimatesConfig{Quantile: 0.5, First: 100, MaxKeys: 1})
	synctest.Test(t, func(*testing.T) {
		time.Sleep(time.Hour)
		e.Record(1, 5)
	})
	synctest.Test(t, func(t *testing.T) {
		require.Equal(t, 100, e.Of(1), "in another clock")
		e.Record(2, 6)
		require.Equal(t, 6, e.Of(2))
	})
}

func TestEstimatesOfManyGoroutines(t *testing.T) {
	e := limiter.NewEstimates[int](limiter.EstimatesConfig{Quantile: 1, First: 1, MaxKeys: 4})
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for cost := range 1000 {
				e.Record(n%5, cost)
				require.LessOrEqual(t, e.Of(n), 1100)
			}
		})
	}
	all.Wait()
	require.GreaterOrEqual(t, e.Of(0)+e.Of(1), 999)
}

func TestInvalidEstimates(t *testing.T) {
	valid := limiter.EstimatesConfig{Quantile: 1, First: 1}
	require.NoError(t, valid.Validate())
	for _, q := range []float64{0, -1, 1.01, math.NaN(), math.Inf(1)} {
		c := valid
		c.Quantile = q
		require.ErrorContains(t, c.Validate(), "limiter: Quantile is")
	}
	err := limiter.EstimatesConfig{Most: -1, Window: -1, MaxKeys: -1}.Validate()
	require.EqualError(t, err, `limiter: Quantile is 0, must be above 0 and at most 1
limiter: First is 0, must be at least 1
limiter: Most is -1, must be at least First, which is 0 (or 0 for no bound)
limiter: Window is -1ns, must be above 0 and at most 315360h0m0s (or 0 for the default)
limiter: MaxKeys is -1, must be at least 1 (or 0 for the default)`)
	require.ErrorContains(t, limiter.EstimatesConfig{Quantile: 1, First: 5, Most: 4}.Validate(), "Most is 4")
	require.Panics(t, func() { limiter.NewEstimates[int](limiter.EstimatesConfig{}) })
}
