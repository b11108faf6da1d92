package breaker

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testenv"
)

// inFlight returns the calls that f counts, however old they are.
func (f *flights) inFlight() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count(-1<<62, 1<<62)
}

// Many slices begin while calls begin and end, so that counters are reused all the time.
func TestFlightsLoseNoCall(t *testing.T) {
	c := Config{Window: time.Hour, Buckets: 1, SlowCall: 1, HungCalls: true}
	f := newFlights(newRules(c.orDefault()), 0)
	f.width, f.tick, f.ratio, f.kept = 10, 10, 1<<20, 1<<60 // no counter of older is reused
	var clock atomic.Int64
	var group sync.WaitGroup
	var held [4][]int64
	for g := range held {
		group.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 3))
			for range testenv.Repeat(100_000, 30_000) {
				at := time.Duration(clock.Add(r.Int64N(50))) // two or three slices
				f.countHung(at)
				held[g] = append(held[g], f.begin(at))
				if len(held[g]) > 60 {
					i := r.IntN(len(held[g]))
					f.end(held[g][i])
					held[g][i] = held[g][len(held[g])-1]
					held[g] = held[g][:len(held[g])-1]
				}
			}
		})
	}
	group.Wait()
	require.Equal(t, int64(4*60), f.inFlight())
	for g := range held {
		for _, slice := range held[g] {
			f.end(slice)
		}
	}
	require.Zero(t, f.inFlight())
	require.NotNil(t, f.older, "calls were moved")
}

func TestAWordOfFlightsKeepsSliceAndCalls(t *testing.T) {
	for _, slice := range []int64{0, 1, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<40 + 7} {
		for _, calls := range []int64{0, 1, -1, 1<<31 - 1, -1 << 31} {
			low, n := unpackFlights(packFlights(slice, calls))
			require.Equal(t, uint32(slice), low)
			require.Equal(t, calls, n)
		}
	}
}
