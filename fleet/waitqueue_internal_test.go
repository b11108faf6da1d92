package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Leaving the end of a queue takes as long as leaving its beginning. So if many waiters give up at
// once, each of them takes no longer than if only a few give up.
func TestLeavingAQueueTakesConstantTime(t *testing.T) {
	leaving := func(waiters int) time.Duration {
		l := &waitQueues{}
		places := make([]*waiter, waiters)
		for i := range places {
			places[i], _ = l.join("key")
		}
		began := time.Now()
		for i := waiters - 1; i >= 0; i-- {
			l.leave("key", places[i])
		}
		require.Empty(t, l.queues)
		return time.Since(began) / time.Duration(waiters)
	}
	least := func(waiters int) time.Duration {
		return min(leaving(waiters), leaving(waiters), leaving(waiters))
	}
	short, long := least(1000), least(100_000)
	require.Less(t, long, 20*short+time.Microsecond, "leaving a queue of 100,000 takes longer than leaving one of 1,000: %s", short)
}
