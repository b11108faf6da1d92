package testenv

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTimeWithoutAProcessorDoesNotCount(t *testing.T) {
	start := time.Now()
	c := &runningClock{last: start}
	require.Equal(t, 30*time.Millisecond, c.at(start.Add(30*time.Millisecond)))
	require.Equal(t, 130*time.Millisecond, c.at(start.Add(2*time.Second)), "all but 100 ms of a long gap is left out")
	require.Equal(t, 130*time.Millisecond, c.at(start), "an earlier time changes nothing")
	require.Equal(t, 140*time.Millisecond, c.at(start.Add(2010*time.Millisecond)))
}

// The first two calls of f take a second in which the clock does not run.
func TestADisturbedCallIsRepeated(t *testing.T) {
	clock, calls := processClock(), 0
	Undisturbed(500*time.Millisecond, func() {
		calls++
		if calls <= 2 {
			clock.mu.Lock()
			<-time.After(time.Second)
			clock.mu.Unlock()
		}
	})
	require.GreaterOrEqual(t, calls, 3)
	calls = 0
	Undisturbed(-time.Hour, func() { calls++ })
	require.Equal(t, 5, calls)
}

// Running follows the clock while the process runs, even if it is not called meanwhile.
func TestWaitingCountsAsRunning(t *testing.T) {
	const long = 5 * longestGap
	began, running := time.Now(), Running()
	require.Eventually(t, func() bool { before := Running(); <-time.After(long); return Running()-before > 2*longestGap }, time.Minute, time.Millisecond)
	require.LessOrEqual(t, Running()-running, time.Since(began))
}
