package read_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
)

func TestReadingAllocatesNothingPerSeries(t *testing.T) {
	for _, n := range []int{1, 100} {
		s := newSet(t, breakers(n)...)
		yielded := 0
		count := func(string, float64) bool {
			yielded++
			return true
		}
		allocs := testing.AllocsPerRun(20, func() { s.Observe(count) })
		require.LessOrEqual(t, allocs, 4.0, "0, but a garbage collection may add a few")
		require.Equal(t, 21*(37*n+4), yielded, "with the 4 of the set itself")
	}
}

func BenchmarkSet(b *testing.B) {
	for _, n := range []int{10, 1_000, 10_000} {
		b.Run(fmt.Sprintf("breakers=%d", n), func(b *testing.B) {
			s, err := read.New(seriesText, breakers(n)...)
			require.NoError(b, err)
			nothing := func(string, float64) bool { return true }
			s.Observe(nothing)
			b.ReportAllocs()
			for b.Loop() {
				s.Observe(nothing)
			}
		})
	}
}

func BenchmarkSetParallel(b *testing.B) {
	s, err := read.New(seriesText, breakers(10)...)
	require.NoError(b, err)
	nothing := func(string, float64) bool { return true }
	s.Observe(nothing)
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			s.Observe(nothing)
		}
	})
}

// breakers returns sources with the 37 series of a breaker each.
func breakers(n int) []stat.Source {
	sources := make([]stat.Source, n)
	for k := range sources {
		s := make(fixedSource, 37)
		for i := range s {
			s[i] = point{instrument.BreakerCalls.Series(fmt.Sprintf("breaker-%d", k), strconv.Itoa(i), ""), float64(i)}
		}
		sources[k] = s
	}
	return sources
}
