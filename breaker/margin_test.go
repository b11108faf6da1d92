package breaker_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/window"
)

// openByOutcomes makes calls with the outcomes, 10 ms apart, until the breaker opens. It returns
// the change and the number of calls.
func openByOutcomes(t *testing.T, c breaker.Config, outcomes []breaker.Outcome) (opening breaker.Change, calls int) {
	t.Helper()
	c.OnChange = func(c breaker.Change) { opening = c }
	b := breaker.NewAt("b", c, t0)
	for i, o := range outcomes {
		at := after(time.Duration(i) * 10 * time.Millisecond)
		p, err := b.AllowAt(at)
		require.NoError(t, err)
		p.RecordAt(at, o)
		if b.Tripped() {
			return opening, i + 1
		}
	}
	return opening, len(outcomes)
}

// withSuccesses returns the outcomes with successes in place of the last n failures.
func withSuccesses(outcomes []breaker.Outcome, n int) []breaker.Outcome {
	list := append([]breaker.Outcome(nil), outcomes...)
	for i := len(list) - 1; n > 0 && i >= 0; i-- {
		if list[i] == breaker.Failure {
			list[i] = breaker.Success
			n--
		}
	}
	return list
}

// TestTheMarginIsExact replays each opening twice. With as many fewer failures as the margin says,
// the breaker must stay closed. With one failure more than that, it must open.
func TestTheMarginIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	seen := map[string]int{}
	configs := testenv.Repeat(3000, 1000)
	for range configs {
		c := breaker.Config{
			FailureRate: []float64{0.3, 0.5, 0.7}[r.IntN(3)], MinCalls: 1 + r.IntN(40),
			FailureRun: []int{breaker.Off, 3, 8, 0}[r.IntN(4)], ConsecutiveFailures: []int{0, 3, 9}[r.IntN(3)],
		}
		share := r.Float64()
		outcomes := make([]breaker.Outcome, 100)
		for i := range outcomes {
			if r.Float64() < share {
				outcomes[i] = breaker.Failure
			}
		}
		opening, calls := openByOutcomes(t, c, outcomes)
		if opening.To == "" {
			continue
		}
		var n int
		var what, rest string
		_, err := fmt.Sscanf(opening.Margin, "%d %s fewer in %s", &n, &what, &rest)
		require.NoError(t, err, "%+v: %q", c, opening.Margin)
		fewer, _ := openByOutcomes(t, c, withSuccesses(outcomes[:calls], n))
		require.Empty(t, fewer.To, "%+v opened by %q: %s, but then %s", c, opening.Reason, opening.Margin, fewer.Reason)
		more, _ := openByOutcomes(t, c, withSuccesses(outcomes[:calls], n-1))
		require.Equal(t, breaker.Open, more.To, "%+v: %s", c, opening.Margin)
		seen[rest]++
		if n > 1 {
			seen["several"]++
		}
	}
	for _, kind := range []string{"this", "a", "several"} {
		require.Greater(t, seen[kind], configs/60, kind)
	}
}

func TestTheMarginInWords(t *testing.T) {
	s, f := breaker.Success, breaker.Failure
	all := func(n int, o breaker.Outcome) (list []breaker.Outcome) {
		for range n {
			list = append(list, o)
		}
		return list
	}
	c := breaker.Config{MinCalls: 20, FailureRun: breaker.Off}
	opening, _ := openByOutcomes(t, c, append(all(11, f), all(9, s)...))
	require.Equal(t, "2 failures fewer in this window would not have opened it", opening.Margin, "11 of 20: 9 are below 50%")
	opening, _ = openByOutcomes(t, c, all(20, f))
	require.Equal(t, "11 failures fewer in this window would not have opened it", opening.Margin)
	opening, _ = openByOutcomes(t, breaker.Config{}, all(15, f))
	require.Equal(t, "1 failure fewer in this run would not have opened it", opening.Margin)

	c.Trip = func(window.Counts) (string, bool) { return "", false }
	opening, _ = openByOutcomes(t, c, all(20, f))
	require.Equal(t, breaker.Open, opening.To)
	require.Empty(t, opening.Margin, "Trip may have opened it with fewer failures")
	c.Trip, c.SharedCounts = nil, func() window.Counts { return window.Counts{} }
	opening, _ = openByOutcomes(t, c, all(20, f))
	require.Equal(t, breaker.Open, opening.To)
	require.Empty(t, opening.Margin, "so may the shared counts")
}

// makeSlowCalls makes fast calls, and then slow calls that take 2 s, all with the outcome o. It
// returns the change.
func makeSlowCalls(t *testing.T, c breaker.Config, fast, slow int, o breaker.Outcome) (opening breaker.Change) {
	t.Helper()
	c.OnChange = func(c breaker.Change) { opening = c }
	b := breaker.NewAt("b", c, t0)
	for i := range fast + slow {
		took := 2 * time.Second
		if i < fast {
			took = 0
		}
		p, err := b.AllowAt(t0)
		require.NoError(t, err)
		p.RecordAt(after(took), o)
	}
	return opening
}

func TestTheMarginOfSlowCalls(t *testing.T) {
	c := breaker.Config{SlowCall: time.Second, MinCalls: 20, FailureRun: breaker.Off}
	opening := makeSlowCalls(t, c, 7, 13, breaker.Success)
	require.Equal(t, "4 slow calls fewer in this window would not have opened it", opening.Margin, "9 of 20 are below 50%")
	opening = makeSlowCalls(t, c, 0, 20, breaker.Failure)
	require.Equal(t, breaker.Open, opening.To)
	require.Empty(t, opening.Margin, "the slow calls open it without the failures, and the failures without the slow calls")
}
