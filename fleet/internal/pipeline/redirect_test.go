package pipeline_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet/internal/pipeline"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/internal/testenv"
)

// slotMove moves a slot to another server, or begins to.
type slotMove struct {
	name string
	do   func(c *redistest.Cluster, slot int, from, to *redistest.Server)
}

var slotMoves = []slotMove{
	{"MOVED", func(c *redistest.Cluster, slot int, _, to *redistest.Server) { c.Settle(slot, to) }},
	{"ASK", (*redistest.Cluster).Migrate},
}

// movingCluster is a Cluster whose slots are moved. Each test moves slots of its own.
var movingCluster = sync.OnceValue(func() *redistest.Cluster { return redistest.StartCluster(&shared) })

// A server that redirects has not executed the command. The other server executes it once.
func TestRedirectsAreFollowedAndExecutedOnce(t *testing.T) {
	t.Parallel()
	c := movingCluster()
	for _, m := range slotMoves {
		for _, callers := range []int{1, 32} {
			t.Run(fmt.Sprintf("%s, %d callers", m.name, callers), func(t *testing.T) {
				w := pipeline.New(dialCluster(t, c.Addrs()), pipeline.Config{Timeout: 5 * time.Second, Lanes: 2})
				key := "{" + freshKey("k") + "}"
				// the client knows the slots from now on
				_, err := addTo(t.Context(), w, "elsewhere", 0)
				require.NoError(t, err)
				slot := c.Slot(key)
				from := c.Home(slot)
				m.do(c, slot, c.Nodes[from], c.Nodes[(from+1)%3])
				var g sync.WaitGroup
				for range callers {
					g.Go(func() {
						if _, err := addTo(t.Context(), w, key, 1); err != nil {
							t.Error(err)
						}
					})
				}
				g.Wait()
				total, err := addTo(t.Context(), w, key, 0)
				require.NoError(t, err)
				require.EqualValues(t, callers, total)
			})
		}
	}
}

// sumScript increments two keys and returns their sum.
const sumScript = "return {redis.call('INCR', KEYS[1]) + redis.call('INCR', KEYS[2])}"

// While the keys of a slot are on two servers, neither can execute a script about all of them.
func TestACommandAboutASlotThatMovesIsTriedAgainUntilItIsDue(t *testing.T) {
	t.Parallel()
	c := movingCluster()
	w := pipeline.New(dialCluster(t, c.Addrs()), pipeline.Config{Timeout: longLimit})
	tag := "{" + freshKey("moves") + "}" // of a slot that no test has moved yet
	one, two := tag+"1", tag+"2"
	both := func(within time.Duration) ([]int64, error) {
		answer, _, err := w.Do(t.Context(), time.Now().Add(within), "eval", sumScript, 2, one, two)
		return answer, err
	}
	_, err := both(longLimit)
	require.NoError(t, err)
	slot := c.Slot(one)
	from := c.Nodes[c.Home(slot)]
	to := c.Nodes[(c.Home(slot)+1)%3]
	c.Migrate(slot, from, to)
	from.Do("MIGRATE", "127.0.0.1", port(to), one, 0, 1000)

	w = pipeline.New(dialCluster(t, c.Addrs()), pipeline.Config{Timeout: 2 * time.Second})
	began := testenv.Running()
	_, err = both(2 * time.Second)
	require.ErrorContains(t, err, "TRYAGAIN")
	require.Less(t, testenv.Running()-began, 2*time.Second)

	w = pipeline.New(dialCluster(t, c.Addrs()), pipeline.Config{Timeout: longLimit})
	type result struct {
		answer []int64
		err    error
	}
	results := make(chan result)
	go func() {
		answer, err := both(longLimit)
		results <- result{answer, err}
	}()
	<-time.After(50 * time.Millisecond)
	from.Do("MIGRATE", "127.0.0.1", port(to), two, 0, 1000)
	c.Settle(slot, to)
	r := <-results
	require.NoError(t, r.err)
	require.Equal(t, []int64{4}, r.answer, "executed once now and once before")
}

func port(s *redistest.Server) string {
	_, port, _ := strings.Cut(s.Addr(), ":")
	return port
}

// Servers that do not agree yet redirect to each other, more often than a client follows.
func TestRedirectsInACircleAreTriedAgain(t *testing.T) {
	t.Parallel()
	c := movingCluster()
	w := pipeline.New(dialCluster(t, c.Addrs()), pipeline.Config{Timeout: longLimit})
	key := "{" + freshKey("circle") + "}"
	_, err := addTo(t.Context(), w, key, 1)
	require.NoError(t, err)
	slot := c.Slot(key)
	from := c.Nodes[c.Home(slot)]
	to := c.Nodes[(c.Home(slot)+1)%3]
	c.Migrate(slot, from, to)
	from.Do("MIGRATE", "127.0.0.1", port(to), key, 0, 1000)
	from.Do("CLUSTER", "SETSLOT", slot, "NODE", to.Do("CLUSTER", "MYID"))
	time.AfterFunc(100*time.Millisecond, func() { to.Do("CLUSTER", "SETSLOT", slot, "NODE", to.Do("CLUSTER", "MYID")) })
	total, err := addTo(t.Context(), w, key, 1)
	require.NoError(t, err)
	require.EqualValues(t, 2, total)
}

// A client for a stand-alone server is connected to a server of a Cluster.
func TestKeysOfDifferentSlotsAreDecidedOneByOne(t *testing.T) {
	client := dialServer(t, cluster().Nodes[0].Addr())
	require.NoError(t, client.ScriptLoad(t.Context(), countingDecision.Text).Err())
	keys := keysAtHome(0, 6)
	first := decideKeys(t, client, countingDecision, keys[:3]...)
	for i, key := range keys[:3] {
		require.Equal(t, []int64{int64(i + 1), 1}, first[key], "key %s: executed once, in a command of its own", key)
	}
	w := pipeline.New(client, pipeline.Config{Timeout: longLimit, Lanes: 1})
	crossed := func() int { return countRejected(cluster().Nodes[0]) }
	before := crossed()
	var g sync.WaitGroup
	for range 200 {
		for _, key := range keys[3:] {
			g.Go(func() {
				if _, _, err := w.Decide(t.Context(), time.Now().Add(longLimit), countingDecision, key, 1); err != nil {
					t.Error(err)
				}
			})
		}
	}
	g.Wait()
	require.Positive(t, crossed()-before, "the test has shown nothing")
	require.LessOrEqual(t, crossed()-before, 2, "merging is not tried again")
	for _, key := range keys[3:] {
		answer, _, err := w.Decide(t.Context(), time.Now().Add(longLimit), countingDecision, key, 0)
		require.NoError(t, err)
		require.EqualValues(t, 200, answer[0])
	}
}

// keysAtHome returns keys in different slots of one node.
func keysAtHome(node, n int) (keys []string) {
	for len(keys) < n {
		if key := freshKey("k"); cluster().Home(cluster().Slot(key)) == node {
			keys = append(keys, key)
		}
	}
	return keys
}

// countRejected returns how many commands a server has rejected with CROSSSLOT.
func countRejected(s *redistest.Server) int {
	_, rest, _ := strings.Cut(s.Do("INFO", "errorstats"), "errorstat_CROSSSLOT:count=")
	count, _, _ := strings.Cut(rest, "\r")
	n, _ := strconv.Atoi(count)
	return n
}
