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
	panicked := false
	g := NewGroupAt[int]("g", GroupConfig{MaxSeries: Off, Breaker: Config{
		SlowCall: time.Nanosecond, ConsecutiveFailures: 1, Probes: 1, ProbeTimeout: time.Millisecond,
		OnChange: func(Change) {
			if !panicked {
				panicked = true
				panic("one change is dropped")
			}
		},
	}}, t0)
	b := g.Get(1)
	for i := range 100 {
		u := t0.Add(time.Duration(i) * time.Second)
		if m, err := b.AllowAt(u); err == nil {
			m.RecordAt(u.Add(time.Millisecond), Outcome(i%3))
		}
		m, _ := b.Allow()
		b.OpenFor(time.Duration(i) * time.Millisecond)
		m.Record(t.Context(), nil, Failure)
	}
	for i := range 3 { // probes that report nothing
		_, _ = b.AllowAt(t0.Add(time.Hour + time.Duration(i)*time.Second))
	}
	of := func(s *stat.Series) string {
		return s.Instrument.Name + " " + strings.Join(s.Values[:len(s.Values)-1], " ")
	}
	own, sums, nonzero := map[string]float64{}, map[string]float64{}, map[*stat.Instrument]bool{}
	for s, v := range b.Observe {
		if s.Instrument.Kind == stat.Counter || s.Instrument == instrument.BreakerState {
			own[of(s)] = v
			nonzero[s.Instrument] = nonzero[s.Instrument] || v > 0
		}
	}
	for i, found := range nonzero {
		require.True(t, found, "%s shows nothing if it is 0", i.Name)
	}
	for s, v := range g.Observe {
		if _, found := own[of(s)]; found {
			sums[of(s)] = v
		}
	}
	require.Greater(t, len(own), 20)
	require.Len(t, sums, len(own))
	for name, v := range own {
		delta := 0.0
		if strings.HasPrefix(name, instrument.BreakerStateTime.Name) {
			delta = 1 // time passes between the two readings
		}
		require.InDelta(t, v, sums[name], delta, name)
	}
}
