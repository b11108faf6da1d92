package breaker

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// The series _other of a group has all counters of a breaker, and the same values.
func TestAllCountersOfABreakerAreSummed(t *testing.T) {
	t0 := time.Now()
	g := NewGroupAt[int]("g", GroupConfig{MaxSeries: Off, Breaker: Config{SlowCall: time.Hour, ConsecutiveFailures: 1}}, t0)
	b := g.Get(1)
	for i := range 100 {
		u := t0.Add(time.Duration(i) * time.Second)
		if m, err := b.AllowAt(u); err == nil {
			m.RecordAt(u, Outcome(i%3))
		}
		m, _ := b.Allow()
		b.OpenFor(time.Duration(i) * time.Millisecond)
		m.Record(t.Context(), nil, Failure)
	}
	of := func(s *stat.Series) string {
		return s.Instrument.Name + " " + strings.Join(s.Values[:len(s.Values)-1], " ")
	}
	own, sums := map[string]float64{}, map[string]float64{}
	for s, v := range b.Observe {
		if s.Instrument.Kind == stat.Counter || s.Instrument == instrument.BreakerState {
			own[of(s)] = v
		}
	}
	for s, v := range g.Observe {
		if _, found := own[of(s)]; found {
			sums[of(s)] = v
		}
	}
	require.Greater(t, len(own), 20)
	require.Len(t, sums, len(own))
	for name, v := range own {
		require.InDelta(t, v, sums[name], 1, name) // the times in the states differ a little
	}
}
