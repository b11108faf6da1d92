package guard_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/bench/internal/guard"
	"github.com/weir-go/weir/dev/bench/internal/measure"
	"github.com/weir-go/weir/dev/bench/internal/rows"
)

func idle() measure.Loop { return func(n int) int { return n } }

// guarded returns an operation that may cost twice the floor, and 0.4 times as much as the peer.
func guarded() rows.Guarded {
	side := rows.Side{Name: "peer", Make: idle}
	return rows.Guarded{Name: "thing", Weir: side, Floor: side, Peer: side, ByFloor: 3.2, ByPeer: 0.64}
}

// fixedMeter returns a meter that returns these ratios, one after the other.
func fixedMeter(ratios ...float64) guard.Meter {
	return func(_, _ measure.Loop) (ratio float64, err error) {
		ratio, ratios = ratios[0], ratios[1:]
		return ratio, nil
	}
}

func TestWatch(t *testing.T) {
	for _, step := range []struct {
		name   string
		ratios []float64 // against the floor, against the peer, and so on
		slower bool
	}{
		{"unchanged", []float64{2, 0.4}, false},
		{"doubled", []float64{4, 0.8, 4, 0.8, 4, 0.8}, true},
		{"high for a while", []float64{4, 0.8, 9, 3, 2, 0.4}, false},
		{"a machine with a fast clock", []float64{4, 0.4}, false},
		{"a machine with fast locks", []float64{2, 0.8}, false},
	} {
		f, err := guard.Watch(fixedMeter(step.ratios...), guarded())
		require.NoError(t, err)
		require.Equal(t, step.slower, f.Slower(), step.name)
		require.Equal(t, len(step.ratios)/2, f.Attempts, step.name)
	}
}

func TestFindingString(t *testing.T) {
	for _, step := range []struct {
		floor, peer float64
		want        string
	}{
		{2, 0.4, "thing                      2.00 of the floor (bound 3.20), 0.40 of peer (bound 0.64): ok, detects × 1.60"},
		{4, 0.8, "thing                      4.00 of the floor (bound 3.20), 0.80 of peer (bound 0.64): TOO SLOW"},
		{1, 0.4, "thing                      1.00 of the floor (bound 3.20), 0.40 of peer (bound 0.64): " +
			"ok, but a doubled cost would pass: lower the bounds to 1.60 and 0.64"},
	} {
		require.Equal(t, step.want, guard.Finding{Guarded: guarded(), Floor: step.floor, Peer: step.peer}.String())
	}
}

func TestQuickestIgnoresDisturbedTurns(t *testing.T) {
	turn := 0
	lasts := func(d time.Duration) measure.Loop {
		return func(n int) int {
			if turn++; turn%3 == 0 {
				d := 10 * d // another program has the core
				for began := time.Now(); time.Since(began) < d; {
				}
			}
			for began := time.Now(); time.Since(began) < d; {
			}
			return n
		}
	}
	ratio, err := guard.Quickest(measure.Plan{Rounds: 60, Each: time.Millisecond})(lasts(time.Millisecond), lasts(time.Millisecond))
	require.NoError(t, err)
	require.InDelta(t, 1, ratio, 0.9, "the slow turns do not change the ratio")
}

func TestUnexpectedResultsAreAnError(t *testing.T) {
	g := guarded()
	g.Peer.Make = func() measure.Loop { return func(int) int { return 0 } }
	meter := func(_, other measure.Loop) (float64, error) {
		_, err := measure.RunTogether(16, other)
		return 1, err
	}
	_, err := guard.Watch(meter, g)
	require.EqualError(t, err, "thing against the peer: 0 of 16 operations had the expected result")
	_, err = guard.Quickest(measure.Plan{Rounds: 1, Each: time.Microsecond})(g.Peer.Make(), idle())
	require.ErrorContains(t, err, "weir: ")
}
