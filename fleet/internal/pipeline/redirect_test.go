package pipeline_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet/internal/pipeline"
	"github.com/weir-go/weir/fleet/internal/redistest"
)

// move has a slot of one server be another's, or be on its way there.
type move struct {
	name string
	do   func(c *redistest.Cluster, slot int, from, to *redistest.Server)
}

var moves = []move{
	{"MOVED", func(c *redistest.Cluster, slot int, _, to *redistest.Server) {
		id := to.Do("CLUSTER", "MYID")
		for _, node := range c.Nodes {
			node.Do("CLUSTER", "SETSLOT", slot, "NODE", id)
		}
	}},
	{"ASK", func(_ *redistest.Cluster, slot int, from, to *redistest.Server) {
		to.Do("CLUSTER", "SETSLOT", slot, "IMPORTING", from.Do("CLUSTER", "MYID"))
		from.Do("CLUSTER", "SETSLOT", slot, "MIGRATING", to.Do("CLUSTER", "MYID"))
	}},
}

// A server that redirects has not executed the command, so it is executed where it is redirected to, and once.
func TestRedirectsAreFollowedAndExecutedOnce(t *testing.T) {
	c := redistest.StartCluster(t)
	for _, m := range moves {
		for _, callers := range []int{1, 32} {
			t.Run(fmt.Sprintf("%s, %d callers", m.name, callers), func(t *testing.T) {
				w := pipeline.New(dialCluster(t, c.Addrs()), pipeline.Config{Timeout: 5 * time.Second, Lanes: 2})
				key := "{" + fresh("k") + "}"
				_, err := add(t.Context(), w, "elsewhere", 0) // the client knows the slots from now on
				require.NoError(t, err)
				from := pipeline.Slot(key) * 3 / 16384
				m.do(c, pipeline.Slot(key), c.Nodes[from], c.Nodes[(from+1)%3])
				var g sync.WaitGroup
				for range callers {
					g.Go(func() {
						if _, err := add(t.Context(), w, key, 1); err != nil {
							t.Error(err)
						}
					})
				}
				g.Wait()
				total, err := add(t.Context(), w, key, 0)
				require.NoError(t, err)
				require.EqualValues(t, callers, total)
			})
		}
	}
}
