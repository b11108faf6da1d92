package fleet_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/window"
)

// crew is three nodes, each with its own client, and what they have counted together.
type crew struct {
	t        *testing.T
	nodes    []member
	recorded int64
}

// lasting is quick with a window longer than any test.
var lasting = fleet.CallsConfig{Span: 5 * time.Minute, Buckets: 10, Interval: quick.Interval}

// linkTo returns a link with a short Timeout and a short cooldown.
func linkTo(t *testing.T, o *redis.Options) *fleet.Link {
	return linkWithin(t, o, 100*time.Millisecond)
}

// linkWithin returns a link with the given Timeout and a short cooldown.
func linkWithin(t *testing.T, o *redis.Options, timeout time.Duration) *fleet.Link {
	o.ContextTimeoutEnabled = true
	o.DialerRetries = 1
	o.DialTimeout = 100 * time.Millisecond
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return connectTo(t, c, fleet.LinkConfig{
		Timeout: timeout, Breaker: breaker.Config{Cooldown: 30 * time.Millisecond, CooldownFactor: 1},
	})
}

func newCrew(t *testing.T, o *redis.Options) *crew {
	return newCrewWithin(t, o, 100*time.Millisecond)
}

func newCrewWithin(t *testing.T, o *redis.Options, timeout time.Duration) *crew {
	c := &crew{t: t}
	for range 3 {
		own := *o
		c.nodes = append(c.nodes, join(t, linkWithin(t, &own, timeout), lasting))
	}
	for _, n := range c.nodes {
		soon(t, func() bool { return n.Flushes() > 0 })
	}
	return c
}

// work lets every node count one failure per millisecond.
func (c *crew) work(d time.Duration) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range d.Milliseconds() {
		for _, n := range c.nodes {
			n.record(window.Failure, 1)
			c.recorded++
		}
		<-tick.C
	}
}

// requireAll waits until every node knows of each call once.
func (c *crew) requireAll() {
	c.t.Helper()
	want := failures(c.recorded)
	for _, n := range c.nodes {
		require.Eventually(c.t, func() bool { return n.Counts() == want }, 10*time.Second, time.Millisecond, "want %v, has %v", want, n.Counts())
	}
	for _, n := range c.nodes {
		require.Never(c.t, func() bool { return n.Counts() != want }, 5*lasting.Interval, time.Millisecond)
		require.Equal(c.t, window.Totals(want), n.Totals())
		require.Zero(c.t, n.Late())
		require.Zero(c.t, n.Lost())
	}
}

// requireAgreement waits until all nodes have the same counts, and returns the number of failures.
func (c *crew) requireAgreement() int64 {
	c.t.Helper()
	soon(c.t, func() bool {
		counts := c.nodes[0].Counts()
		for _, n := range c.nodes {
			if n.Counts() != counts || n.Err() != nil || n.Lag() > 3*lasting.Interval {
				return false
			}
		}
		return true
	})
	return c.nodes[0].Counts().Failures
}

// requireFault waits until the first node reports the fault.
func (c *crew) requireFault(want string) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		e, ok := errors.AsType[*fleet.StoreError](c.nodes[0].Err())
		return ok && e.Fault == want
	}, 10*time.Second, 100*time.Microsecond, "%s", want)
}

func TestCallsSurviveAServerThatIsKilled(t *testing.T) {
	t.Parallel()
	s := redistest.Options{AppendOnly: true}.Start(t)
	c := newCrew(t, s.Options())
	c.work(100 * time.Millisecond)
	s.Kill()
	c.work(200 * time.Millisecond)
	s.Restart()
	c.work(100 * time.Millisecond)
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
		c := newCrew(t, s.Options())
		c.work(100 * time.Millisecond)
		told := c.recorded
		forget(s)
		c.work(200 * time.Millisecond)
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
	c := newCrew(t, s.Options())
	c.work(100 * time.Millisecond)
	s.Pause()
	c.work(5 * time.Second)
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
	c := newCrew(t, &redis.Options{Addr: p.Addr()})
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
		c.work(150 * time.Millisecond)
	}
	c.requireAll()
	t.Logf("%d calls, none lost; lag %v", c.recorded, c.nodes[0].Lag())
}

func TestCallsSurviveAServerThatForgetsItsScripts(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := newCrewWithin(t, s.Options(), patient)
	for range 5 {
		s.Do("SCRIPT", "FLUSH")
		c.work(30 * time.Millisecond)
	}
	c.requireAll()
	require.Zero(t, c.nodes[0].FailedFlushes())
}

func TestCallsWaitForAServerThatCannotTakeThem(t *testing.T) {
	s := redistest.Start(t)
	elsewhere := redistest.Start(t)
	key := newCalls(linkTo(t, s.Options()), name(t), lasting).Key()
	c := newCrew(t, s.Options())
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
		c.work(50 * time.Millisecond)
		require.GreaterOrEqual(t, c.nodes[0].Counts().Failures, (c.recorded-before)/3, "its own")
		c.requireFault(fault)
		s.Do(trouble.end...)
		c.requireAgreement()
		require.GreaterOrEqual(t, c.nodes[0].Counts().Failures, int64(150), "pending calls have arrived")
	}
}

func TestCallsWaitForAServerThatLoads(t *testing.T) {
	t.Parallel()
	s := redistest.Options{Args: []string{"--key-load-delay", "400", "--loading-process-events-interval-bytes", "1024"}}.Start(t)
	filler := s.Client().Pipeline()
	for i := range 3000 {
		filler.Set(t.Context(), fmt.Sprint("filler", i), "", 0)
	}
	_, err := filler.Exec(t.Context())
	require.NoError(t, err)
	c := newCrew(t, s.Options())
	c.work(50 * time.Millisecond)
	var load sync.WaitGroup
	load.Go(func() { s.Do("DEBUG", "RELOAD") })
	c.work(100 * time.Millisecond)
	c.requireFault(fleet.FaultLoading)
	load.Wait()
	c.requireAll()
}

func TestCallsFollowAFailover(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := master.StartReplica()
	p := redistest.NewProxy(t, master.Addr())
	c := newCrew(t, &redis.Options{Addr: p.Addr()})
	c.work(100 * time.Millisecond)
	c.requireAll()
	master.AwaitReplica()
	before := c.recorded
	c.work(100 * time.Millisecond)
	master.Kill()
	c.work(100 * time.Millisecond)
	replica.Promote()
	p.Lead(replica.Addr())
	c.work(100 * time.Millisecond)
	kept := c.requireAgreement()
	t.Logf("%d calls, %d lost with the failover", c.recorded, c.recorded-kept)
	require.GreaterOrEqual(t, kept, before, "only calls that the replica had not received may be lost")
	for _, n := range c.nodes {
		require.LessOrEqual(t, n.Totals().Failures, c.recorded)
		require.GreaterOrEqual(t, n.Totals().Failures, kept)
	}
}

// The failures of a node that is cut off are caused by its network. When it comes back,
// the other nodes do not count failures that are over.
func TestOldFailuresOfAHealedPartitionDoNotCount(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	shape := fleet.CallsConfig{Span: 4 * time.Second, Buckets: 10, Interval: 20 * time.Millisecond}
	healthy := join(t, linkTo(t, s.Options()), shape)
	cut := join(t, linkTo(t, &redis.Options{Addr: p.Addr()}), shape)
	soon(t, func() bool { return cut.Flushes() > 0 })
	p.Refuse()
	cut.record(window.Failure, 100)
	require.Equal(t, int64(100), cut.Counts().Failures)
	soon(t, func() bool { return cut.Counts().Failures == 0 }, "they are out of the window")
	p.Accept()
	healthy.record(window.Success, 10)
	soon(t, func() bool { return cut.Err() == nil && cut.Counts().Successes == 10 })
	require.Never(t, func() bool { return healthy.Counts().Failures > 0 }, 200*time.Millisecond, time.Millisecond)
	require.Equal(t, window.Totals(successes(10)), healthy.Totals())
	require.Equal(t, int64(100), cut.Late())
	require.Equal(t, window.Totals{Successes: 10, Failures: 100}, cut.Totals())
}

func TestCallsThroughACluster(t *testing.T) {
	t.Parallel()
	o := &redis.ClusterOptions{Addrs: cluster().Addrs(), ContextTimeoutEnabled: true}
	client := redis.NewClusterClient(o)
	defer client.Close()
	l, err := fleet.Connect(t.Context(), "cluster", client, fleet.LinkConfig{Timeout: patient})
	require.NoError(t, err)
	a, b := join(t, l, quick), join(t, l, quick)
	a.record(window.Failure, 3)
	soon(t, func() bool { return b.Counts() == failures(3) })
}
