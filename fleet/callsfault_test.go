package fleet_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/window"
)

func TestCallsSurviveAServerThatIsKilled(t *testing.T) {
	t.Parallel()
	s := redistest.Options{AppendOnly: true}.Start(t)
	c := newThreeNodes(t, s.Options())
	c.countFailures(100 * time.Millisecond)
	s.Kill()
	c.countFailures(200 * time.Millisecond)
	s.Restart()
	c.countFailures(100 * time.Millisecond)
	c.requireAll()
	t.Logf("%d calls, none lost; lag %v", c.recorded, c.nodes[0].Lag())
}

func TestCallsAfterAServerLosesItsData(t *testing.T) {
	t.Parallel()
	for what, forget := range map[string]func(*redistest.Server){
		"killed":  func(s *redistest.Server) { s.Restart() },
		"flushed": func(s *redistest.Server) { s.Do("FLUSHALL") },
	} {
		s := redistest.Start(t)
		c := newThreeNodes(t, s.Options())
		c.countFailures(100 * time.Millisecond)
		told := c.recorded
		forget(s)
		c.countFailures(200 * time.Millisecond)
		kept := c.requireAgreement()
		require.GreaterOrEqual(t, kept, c.recorded-told)
		t.Logf("%s: %d calls, %d of them before: %d lost", what, c.recorded, told, c.recorded-kept)
		for _, n := range c.nodes {
			require.GreaterOrEqual(t, n.Totals().Failures, c.recorded/3+(kept-told)*2/3, "all own calls, and the known calls of the others")
			n.stop()
		}
	}
}

func TestCallsSurviveAServerThatHangs(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newThreeNodes(t, s.Options())
	c.countFailures(100 * time.Millisecond)
	s.Pause()
	c.countFailures(5 * time.Second)
	require.Positive(t, c.nodes[0].FailedFlushes())
	require.Greater(t, c.nodes[0].Lag(), 4*time.Second)
	require.GreaterOrEqual(t, c.nodes[0].Counts().Failures, int64(5000), "own calls still count")
	s.Continue()
	c.requireAll()
	t.Logf("%d calls, none lost; lag %v", c.recorded, c.nodes[0].Lag())
}

func TestCallsSurviveANetworkThatFails(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	c := newThreeNodes(t, &redis.Options{Addr: p.Addr()})
	for _, fault := range []func(){
		func() { p.LoseReplies(5) },
		p.Cut,
		func() { p.Delay(20 * time.Millisecond) },
		func() { p.Delay(200 * time.Millisecond) },
		func() { p.Delay(0); p.Swallow(true, false) },
		func() { p.Swallow(false, true) },
		func() { p.Swallow(false, false); p.Refuse() },
		p.Accept,
		func() { p.LoseReplies(5) },
	} {
		fault()
		c.countFailures(150 * time.Millisecond)
	}
	c.requireAll()
	t.Logf("%d calls, none lost; lag %v", c.recorded, c.nodes[0].Lag())
}

func TestCallsSurviveAServerThatForgetsItsScripts(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newThreeNodesWithin(t, s.Options(), longTimeout)
	for range 5 {
		s.Do("SCRIPT", "FLUSH")
		c.countFailures(30 * time.Millisecond)
	}
	c.requireAll()
	require.Zero(t, c.nodes[0].FailedFlushes())
}

func TestCallsWaitForAServerThatCannotTakeThem(t *testing.T) {
	s := redistest.Start(t)
	elsewhere := redistest.Start(t)
	key := newCalls(linkTo(t, s.Options()), nameOfTest(t), longWindow).Key()
	c := newThreeNodes(t, s.Options())
	for fault, trouble := range map[string]struct{ begin, end []any }{
		fleet.FaultReadOnly: {
			[]any{"REPLICAOF", "127.0.0.1", elsewhere.Options().Addr[len("127.0.0.1:"):]},
			[]any{"REPLICAOF", "NO", "ONE"},
		},
		fleet.FaultOutOfMemory: {[]any{"CONFIG", "SET", "maxmemory", "1"}, []any{"CONFIG", "SET", "maxmemory", "0"}},
		fleet.FaultForeign:     {[]any{"SET", key, "something else"}, []any{"DEL", key}},
	} {
		t.Log(fault)
		s.Do("DEL", key)
		s.Do(trouble.begin...)
		before := c.recorded
		c.countFailures(50 * time.Millisecond)
		require.GreaterOrEqual(t, c.nodes[0].Counts().Failures, (c.recorded-before)/3, "its own")
		c.requireFault(fault)
		s.Do(trouble.end...)
		c.requireAgreement()
		require.GreaterOrEqual(t, c.nodes[0].Counts().Failures, int64(150), "pending calls have arrived")
	}
}

func TestCallsWaitForAServerThatLoads(t *testing.T) {
	t.Parallel()
	s := redistest.Options{Args: []string{"--loading-process-events-interval-bytes", "1024", "--rdbcompression", "no"}}.Start(t)
	filler := s.Client().Pipeline()
	for i := range 3000 {
		filler.Set(t.Context(), fmt.Sprint("filler", i), strings.Repeat("x", 1024), 0)
	}
	_, err := filler.Exec(t.Context())
	require.NoError(t, err)
	c := newThreeNodes(t, s.Options())
	c.countFailures(50 * time.Millisecond)
	s.Do("CONFIG", "SET", "key-load-delay", 10_000) // microseconds: half a minute for all of them
	var load sync.WaitGroup
	load.Go(func() { s.Do("DEBUG", "RELOAD") })
	c.requireFault(fleet.FaultLoading)
	c.countFailures(100 * time.Millisecond)
	s.Do("CONFIG", "SET", "key-load-delay", 0)
	load.Wait()
	c.requireAll()
}

func TestCallsFollowAFailover(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := master.StartReplica()
	p := redistest.NewProxy(t, master.Addr())
	c := newThreeNodes(t, &redis.Options{Addr: p.Addr()})
	c.countFailures(100 * time.Millisecond)
	c.requireAll()
	master.AwaitReplica()
	before := c.recorded
	c.countFailures(100 * time.Millisecond)
	master.Kill()
	c.countFailures(100 * time.Millisecond)
	replica.Promote()
	p.Lead(replica.Addr())
	c.countFailures(100 * time.Millisecond)
	kept := c.requireAgreement()
	t.Logf("%d calls, %d lost with the failover", c.recorded, c.recorded-kept)
	require.GreaterOrEqual(t, kept, before, "only calls that the replica had not received may be lost")
	for _, n := range c.nodes {
		require.LessOrEqual(t, n.Totals().Failures, c.recorded)
		require.GreaterOrEqual(t, n.Totals().Failures, kept)
	}
}

// The failures of a node that is cut off are caused by its network. When it comes back, the other
// nodes do not count failures that have left the window.
func TestOldFailuresOfAHealedPartitionDoNotCount(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	shape := fleet.CallsConfig{Span: 4 * time.Second, Buckets: 10, Interval: 20 * time.Millisecond}
	healthy := join(t, linkTo(t, s.Options()), shape)
	cut := join(t, linkTo(t, &redis.Options{Addr: p.Addr()}), shape)
	requireSoon(t, func() bool { return cut.Flushes() > 0 })
	p.Refuse()
	cut.record(window.Failure, 100)
	require.Equal(t, int64(100), cut.Counts().Failures)
	requireSoon(t, func() bool { return cut.Counts().Failures == 0 }, "they are out of the window")
	p.Accept()
	requireSoon(t, func() bool { return cut.Err() == nil })
	healthy.record(window.Success, 10)
	requireSoon(t, func() bool { return cut.Counts().Successes == 10 })
	require.Never(t, func() bool { return healthy.Counts().Failures > 0 }, 200*time.Millisecond, time.Millisecond)
	require.Equal(t, window.Totals(succeededCounts(10)), healthy.Totals())
	require.Equal(t, int64(100), cut.Late())
	require.Equal(t, window.Totals{Successes: 10, Failures: 100}, cut.Totals())
}

func TestCallsThroughACluster(t *testing.T) {
	t.Parallel()
	o := &redis.ClusterOptions{Addrs: sharedCluster().Addrs(), ContextTimeoutEnabled: true}
	client := redis.NewClusterClient(o)
	defer client.Close()
	l, err := fleet.Connect(t.Context(), "cluster", client, fleet.LinkConfig{Timeout: longTimeout})
	require.NoError(t, err)
	a, b := join(t, l, fastFlushes), join(t, l, fastFlushes)
	a.record(window.Failure, 3)
	requireSoon(t, func() bool { return b.Counts() == failedCounts(3) })
}
