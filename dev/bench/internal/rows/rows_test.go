package rows_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/dev/bench/internal/rows"
	"github.com/weir-go/weir/internal/testenv"
)

func TestEverySideWorks(t *testing.T) {
	for _, row := range rows.All(1000) {
		for _, side := range []rows.Side{row.Weir, row.Peer} {
			loop := side.Make()
			for _, m := range measure.Modes() {
				_, err := m.Cost(loop, 2000)
				require.NoErrorf(t, err, "%s: %s, %s", row.Name, side.Name, m)
			}
		}
	}
	for _, floor := range rows.Floors() {
		_, err := measure.Threads.Cost(floor.Make(), 1000)
		require.NoError(t, err, floor.Name)
	}
}

func TestEverySideOnRedisWorks(t *testing.T) {
	testenv.Program(t, "redis-server")
	r, err := rows.StartRedis(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Stop()) }()
	for _, row := range rows.Fleet(r) {
		for _, side := range []rows.Side{row.Weir, row.Peer} {
			loop := side.Make()
			for _, m := range rows.FleetModes() {
				_, err := m.Cost(loop, 500)
				require.NoErrorf(t, err, "%s: %s, %s", row.Name, side.Name, m)
			}
		}
	}
}

// A stopped Redis must not make a side look fast.
func TestNoSideWorksWithoutRedis(t *testing.T) {
	testenv.Program(t, "redis-server")
	r, err := rows.StartRedis(t.Context())
	require.NoError(t, err)
	var loops []measure.Loop
	for _, row := range rows.Fleet(r)[:1] {
		loops = append(loops, row.Weir.Make(), row.Peer.Make())
	}
	require.NoError(t, r.Stop())
	for _, loop := range loops {
		_, err := measure.Serial.Cost(loop, 10)
		require.ErrorContains(t, err, "0 of 10 operations had the expected result")
	}
}

func TestStartRedisSaysHowToInstallRedis(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := rows.StartRedis(t.Context())
	require.ErrorContains(t, err, "make deps")
}

func TestWeirAllocatesNothingInRowsWithABound(t *testing.T) {
	for _, row := range rows.All(100) {
		if row.Serial == 0 {
			continue // the row has no bound, and may allocate
		}
		require.Zerof(t, measure.Allocs(row.Weir.Make(), 1000), "%s: %s", row.Name, row.Weir.Name)
	}
}

func TestEveryRowDescribesBothSides(t *testing.T) {
	names := map[string]bool{}
	for _, row := range append(rows.All(1000), rows.Fleet(nil)...) {
		require.False(t, names[row.Name], row.Name)
		names[row.Name] = true
		for _, text := range []string{row.Name, row.Why, row.Weir.Name, row.Weir.Does, row.Peer.Name, row.Peer.Does} {
			require.NotEmpty(t, text, row.Name)
		}
		if row.Main {
			require.Positive(t, row.Bound(measure.Serial), "%s: a main row needs a bound", row.Name)
		}
	}
}

// The bounds are promises. This test keeps them from being raised by accident.
func TestBounds(t *testing.T) {
	want := map[string][2]float64{
		"breaker: closed, success":                                      {0.32, 0.45},
		"breaker: closed, success, with latency":                        {0.55, 0.55},
		"breaker: closed, failure":                                      {0.60, 0.60},
		"breaker: open":                                                 {0.60, 0.30},
		"breaker: success, 1 reading, against the clock":                {1.8, 0},
		"breaker: success, 2 readings, against the clock":               {3.0, 0},
		"limiter: allowed":                                              {0.60, 0.55},
		"limiter: allowed, 10/3 ns per token":                           {0.60, 0.55},
		"limiter: refused":                                              {0.50, 0.30},
		"limiter: allowed, against the clock":                           {1.9, 0},
		"limiter: refused, against the clock":                           {1.5, 0},
		"keyed, 1000000 live keys: throttled":                           {0.50, 0},
		"gate: success, 2 readings":                                     {0.40, 0.50},
		"gate: success, failsafe-go":                                    {0.12, 0.12},
		"gate: MaxConcurrent, against none and half a reading":          {1, 0},
		"gate: Rate and MaxConcurrent, against Rate and half a reading": {1, 0},
		"gate: Adaptive, against none and a reading":                    {1, 0},
		"window: Counter.Add":                                           {1.25, 0},
		"window: Calls.Record":                                          {1.25, 0},
	}
	got := map[string][2]float64{}
	for _, row := range rows.All(1_000_000) {
		if row.Serial > 0 || row.Threads > 0 {
			got[row.Name] = [2]float64{row.Bound(measure.Serial), row.Bound(measure.Threads)}
		}
	}
	require.Equal(t, want, got)

	// A bound of 1/x requires x times as many decisions per second, with 8 and with 64 callers.
	times := map[string][2]float64{}
	for _, row := range rows.Fleet(nil) {
		if row.Goroutines8 > 0 || row.Goroutines64 > 0 {
			times[row.Name] = [2]float64{row.Bound(measure.Goroutines8), row.Bound(measure.Goroutines64)}
		}
	}
	require.Equal(t, map[string][2]float64{
		"fleet: token bucket":    {1 / 1.15, 1 / 2.},
		"fleet: hot key, leased": {1 / 20., 1 / 20.},
		"fleet: refused key":     {1 / 20., 1 / 20.},
	}, times)
}
