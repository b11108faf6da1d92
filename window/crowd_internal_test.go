package window

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStripedCallsAreAllCounted stripes the counter of successes while several goroutines record.
func TestStripedCallsAreAllCounted(t *testing.T) {
	const goroutines, each = 4, 20_000
	c := NewCalls(CallsConfig{Span: time.Hour})
	c.Record(Failure, 0)
	var all sync.WaitGroup
	for range goroutines {
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
	require.EqualValues(t, goroutines*each, n.Successes)
	require.EqualValues(t, 1, n.Failures)
	require.EqualValues(t, goroutines*each, c.Totals().Successes)
}
