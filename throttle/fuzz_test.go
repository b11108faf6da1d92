package throttle_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/window"
)

// FuzzThrottle compares a throttle with the formula computed from a list of all results.
func FuzzThrottle(f *testing.F) {
	f.Add(uint64(1), false, uint8(20))
	f.Add(uint64(2), true, uint8(8))
	f.Add(uint64(3), true, uint8(11))
	f.Fuzz(func(t *testing.T, seed uint64, counted bool, k uint8) {
		r := rand.New(rand.NewPCG(seed, 0))
		c := throttle.Config{K: 1 + float64(k)/16, MinCalls: 5, CountRefused: counted, MaxRefusal: 0.95}
		th := throttle.NewAt("t", c, t0).SetRandom(r.Float64, infiniteInterval)
		var happened [3]map[int64]float64 // by result and by bucket of a second
		for i := range happened {
			happened[i] = map[int64]float64{}
		}
		at := time.Duration(0)
		for range 2000 {
			at += time.Duration(r.ExpFloat64() * float64(20*time.Millisecond))
			if r.IntN(500) == 0 {
				at += time.Duration(r.IntN(15)) * time.Second
			}
			var sums [3]float64
			for i := range sums {
				for b := int64(at/time.Second) - 9; b <= int64(at/time.Second); b++ {
					sums[i] += happened[i][b]
				}
			}
			good, requests := sums[window.Success], sums[0]+sums[1]
			if counted {
				requests += sums[2]
			}
			want := max(0, (requests-c.K*good)/(requests+1))
			if requests < 5 {
				want = 0
			}
			u := t0.Add(at)
			require.InDelta(t, min(want, 0.95), th.RefusalRateAt(u), 1e-9)
			p, err := th.AllowAt(u)
			if err != nil {
				require.Positive(t, want)
				happened[2][int64(at/time.Second)]++
				continue
			}
			o := window.Outcome(r.IntN(2))
			happened[o][int64(at/time.Second)]++
			p.RecordAt(u, o)
		}
	})
}
