package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// The series _other of a group has all counters of a breaker.
func TestAllCountersOfABreakerAreSummed(t *testing.T) {
	g := NewGroup[int]("g", GroupConfig{Breaker: Config{SlowCall: time.Hour}})
	l := g.observers.others
	summed := 0
	l.eachMetric(g.Get(1), func(s *stat.Series, i int, _ float64) {
		if s.Instrument.Kind == stat.Counter || s.Instrument == instrument.BreakerState {
			require.GreaterOrEqual(t, i, 0, s.Instrument.Name)
			summed++
		}
	})
	require.Greater(t, summed, 20)
}
