package fleet_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/window"
)

// Redis stores a hash of up to 512 fields as a list, and a larger one as a table.
func TestMemoryOfANodeInRedis(t *testing.T) {
	t.Parallel()
	direct := newClient(t, redistest.Start(t))
	l := connectTo(t, direct, fleet.LinkConfig{Timeout: longTimeout})
	for nodes, most := range map[int]int64{400: 80, 1500: 130} {
		var key string
		for range nodes {
			c := newCalls(l, fmt.Sprint(nodes), fleet.CallsConfig{})
			for range 200 {
				c.Record(window.Failure, 0)
			}
			countOnce(t, c)
			key = c.Key()
		}
		held := direct.MemoryUsage(t.Context(), key, 0).Val()
		t.Logf("%d bytes for each of %d nodes", held/int64(nodes), nodes)
		require.Positive(t, held)
		require.LessOrEqual(t, held, most*int64(nodes))
	}
}

// A node with the largest counts that a script can hold.
func TestMemoryOfANodeWithLargeCountsInRedis(t *testing.T) {
	direct := newClient(t, redistest.Start(t))
	for i := range 100 {
		value := strings.TrimSpace(strings.Repeat(" 9007199254740992", 9))
		require.NoError(t, direct.HSet(t.Context(), "calls", fmt.Sprintf("n%026d", i), value).Err())
	}
	held := direct.MemoryUsage(t.Context(), "calls", 0).Val()
	t.Logf("%d bytes per node", held/100)
	require.LessOrEqual(t, held, int64(100*260))
}

// Redis stores a hash as a list if no value has more than 64 bytes.
func TestMemoryOfABucketInRedis(t *testing.T) {
	for name, c := range map[string]struct {
		calls window.Counts // in each bucket
		most  int64         // bytes per bucket
	}{
		"thousands": {window.Counts{Successes: 9000, Failures: 900, Slow: 900, SlowFailures: 90, Ignored: 90, Refused: 900}, 50},
		"trillions": {window.Counts{Successes: 9e12, Failures: 9e12, Slow: 9e12, SlowFailures: 9e12, Ignored: 9e12, Refused: 9e12}, 160},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestFleet(t)
			const buckets = 100
			n := fleet.NewCallsNode(connect(t), nameOfTest(t), fleet.CallsConfig{Span: buckets * time.Second, Buckets: buckets, Interval: time.Second})
			var first, all int64
			for i := range buckets {
				n.Count(c.calls)
				s.exchange(n)
				all = newClient(t, sharedServer()).MemoryUsage(t.Context(), keyOf(t), 0).Val()
				if i == 0 {
					first = all
				}
				s.wait(time.Second)
			}
			t.Logf("%d bytes, %d for each further bucket", first, (all-first)/(buckets-1))
			require.LessOrEqual(t, (all-first)/(buckets-1), c.most)
		})
	}
}
