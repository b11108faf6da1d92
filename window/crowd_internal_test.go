package window

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWhatACrowdRecordsIsCountedToTheCall spreads what several goroutines record at once.
func TestWhatACrowdRecordsIsCountedToTheCall(t *testing.T) {
	const crowd, each = 4, 20_000
	c := NewCalls(CallsConfig{Span: time.Hour})
	c.Record(Failure, 0)
	var all sync.WaitGroup
	for range crowd {
		all.Go(func() {
			for i := range each {
				c.Record(Success, 0)
				if i == each/2 {
					c.tally.Stripe()
				}
			}
		})
	}
	all.Wait()
	n := c.Counts()
	require.EqualValues(t, crowd*each, n.Successes)
	require.EqualValues(t, 1, n.Failures)
	require.EqualValues(t, crowd*each, c.Totals().Successes)
}
