package fleet_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/window"
)

// Redis stores a hash of up to 512 fields as a list, and a larger one as a table.
func TestMemoryOfANodeInRedis(t *testing.T) {
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
