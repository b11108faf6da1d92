package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter"
)

var (
	frailCluster = sync.OnceValue(func() *redistest.Cluster { return redistest.StartCluster(&shared) })
	frailInUse   sync.Mutex
)

// stoppableCluster returns a Cluster whose servers tests may stop. Only one test uses it at a time,
// and leaves it as it was.
func stoppableCluster(t *testing.T) *redistest.Cluster {
	frailInUse.Lock()
	t.Cleanup(frailInUse.Unlock)
	c := frailCluster()
	c.Await()
	return c
}

// takerByKey has the one method of a Limiter that these tests use.
type takerByKey interface {
	Take(ctx context.Context, key string, n int) (fleet.Result, error)
}

// countingTaker returns a limiter with a limit that is never reached.
func countingTaker(l *fleet.Link, name string, c fleet.Config) takerByKey {
	return newLimiter(l, name, fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: faultTotal}, c)
}

// tenPerSecondTaker returns a limiter of ten per second.
func tenPerSecondTaker(l *fleet.Link, name string, c fleet.Config) takerByKey {
	return newLimiter(l, name, fleet.FixedWindow{Limit: 10, Window: time.Second}, c)
}

// threeKeyTaker returns a limiter with three Redis keys per user and limits that are never reached.
func threeKeyTaker(l *fleet.Link, name string, c fleet.Config) takerByKey {
	return newLimiters(l, name, c, fleet.FixedWindow{Limit: faultTotal, Window: time.Hour},
		fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: faultTotal}, fleet.SlidingWindow{Limit: faultTotal, Window: time.Hour})
}

func dialCluster(t *testing.T, addrs ...string) *redis.ClusterClient {
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// openServers returns the addresses of the servers whose breakers are not closed.
func openServers(l *fleet.Link) (open []string) {
	for addr, b := range l.Breakers() {
		if b.State() != breaker.Closed {
			open = append(open, addr)
		}
	}
	return open
}

// shardLoad takes tokens of many keys until the context ends, and counts per node of the cluster
// whether Redis or the policy decided.
type shardLoad struct {
	server, other [3]atomic.Int64
	worst         atomic.Int64
}

func (s *shardLoad) run(ctx context.Context, t *testing.T, c *redistest.Cluster, b takerByKey, prefix string) {
	keys := make([]string, 60)
	homes := make([]int, len(keys))
	for i := range keys {
		keys[i] = newKey()
		homes[i] = c.Home(c.Slot(prefix + "{" + keys[i] + "}"))
	}
	var g sync.WaitGroup
	for first := range 6 {
		g.Go(func() {
			for i := first; ctx.Err() == nil; i = (i + 6) % len(keys) {
				began := testenv.Running()
				r, err := b.Take(context.WithoutCancel(ctx), keys[i], 1)
				if took := int64(testenv.Running() - began); took > s.worst.Load() {
					s.worst.Store(took)
				}
				switch {
				case err != nil:
					t.Errorf("key of node %d: %v", homes[i], err)
					return
				case r.From == fleet.FromServer:
					s.server[homes[i]].Add(1)
				default:
					s.other[homes[i]].Add(1)
					if homes[i] < 2 {
						t.Logf("key of node %d, after %v", homes[i], testenv.Running()-began)
					}
				}
				<-time.After(time.Millisecond)
			}
		})
	}
	g.Wait()
}

// reset clears the counts.
func (s *shardLoad) reset() {
	for i := range s.server {
		s.server[i].Store(0)
		s.other[i].Store(0)
	}
}

func TestUnavailableMasterAffectsOnlyItsOwnKeys(t *testing.T) {
	t.Parallel()
	const timeout = 4 * time.Second // longer than this process may wait for a processor
	c := stoppableCluster(t)
	last := c.Nodes[2]
	for name, harm := range map[string]struct{ begin, end func() }{
		"killed":  {last.Kill, func() { last.Restart() }},
		"hanging": {last.Pause, last.Continue},
	} {
		t.Run(name, func(t *testing.T) {
			c.Await()
			l := connectTo(t, dialCluster(t, c.Addrs()...), fleet.LinkConfig{Timeout: timeout})
			b := countingTaker(l, "shards-"+name, fleet.Config{OnOutage: fleet.FailOpen, MaxDenied: limiter.Off})
			var load shardLoad
			ctx, stop := context.WithCancel(t.Context())
			var g sync.WaitGroup
			g.Go(func() { load.run(ctx, t, c, b, "weir:shards-"+name+":") })
			defer g.Wait()
			defer stop()
			require.Eventually(t, func() bool { return load.server[0].Load()*load.server[1].Load()*load.server[2].Load() > 0 }, longTimeout, 10*ms)
			require.Empty(t, openServers(l))
			for i := range load.other {
				require.Zero(t, load.other[i].Load(), "node %d", i)
			}

			harm.begin()
			waitFor(3 * time.Second) // the others find that it is gone after 2 s
			require.Eventually(t, func() bool { return slices.Contains(openServers(l), last.Addr()) }, longTimeout, 10*ms)
			harm.end()
			require.Zero(t, load.other[0].Load()+load.other[1].Load(), "decisions without Redis about keys of the working servers")
			require.Positive(t, load.other[2].Load())
			require.Equal(t, []string{last.Addr()}, openServers(l))
			require.False(t, l.Breaker().Tripped())
			require.ErrorIs(t, l.Err(), fleet.ErrUnavailable)

			c.Await()
			require.Eventually(t, func() bool { return len(openServers(l)) == 0 }, longTimeout, 10*ms)
			load.reset()
			require.Eventually(t, func() bool { return load.server[2].Load() > 0 }, longTimeout, 10*ms)
			waitFor(300 * ms)
			require.Zero(t, load.other[0].Load()+load.other[1].Load()+load.other[2].Load())
			require.Less(t, time.Duration(load.worst.Load()), timeout+timeoutSlack, "the longest call")
		})
	}
}

// A process that starts while a master is unavailable can use the others.
func TestConnectWhileAMasterIsUnavailable(t *testing.T) {
	t.Parallel()
	c := stoppableCluster(t)
	c.Nodes[2].Kill()
	defer func() {
		c.Nodes[2].Restart()
		c.Await()
	}()
	l := connectTo(t, dialCluster(t, c.Addrs()...), fleet.LinkConfig{Timeout: time.Second, Prefix: keyPrefix(t)})
	b := countingTaker(l, "start", fleet.Config{OnOutage: fleet.FailClosed})
	for i := range 30 {
		key := fmt.Sprint("user", i)
		if c.Home(c.Slot("{"+key+"}")) == 2 {
			continue
		}
		require.Eventually(t, func() bool {
			r, err := b.Take(t.Context(), key, 1)
			require.NoError(t, err)
			return r.From == fleet.FromServer
		}, longTimeout, 10*ms, "key %s", key)
	}
}

// A slot moves between servers under load. Its keys move one by one, so for some time the keys of
// one decision are on two servers.
func TestASlotThatMovesUnderLoadLosesNoDecision(t *testing.T) {
	t.Parallel()
	c := stoppableCluster(t)
	l := connectTo(t, dialCluster(t, c.Addrs()...), fleet.LinkConfig{Timeout: longTimeout, Prefix: keyPrefix(t)})
	all := threeKeyTaker(l, "moving", fleet.Config{OnOutage: fleet.FailError, MaxDenied: limiter.Off})
	slot := c.Slot(keyPrefix(t) + "moving:{hot}")
	from, to := c.Nodes[c.Home(slot)], c.Nodes[(c.Home(slot)+1)%3]
	var granted atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var g sync.WaitGroup
	for range 16 {
		g.Go(func() {
			for ctx.Err() == nil {
				r, err := all.Take(t.Context(), "hot", 1)
				if err != nil || !r.OK {
					t.Errorf("%+v, %v", r, err)
					return
				}
				granted.Add(1)
				<-time.After(ms)
			}
		})
	}
	for range 4 {
		waitFor(100 * ms)
		c.Migrate(slot, from, to)
		for _, key := range from.Client().ClusterGetKeysInSlot(t.Context(), slot, 100).Val() {
			waitFor(20 * ms)
			from.Do("MIGRATE", "127.0.0.1", port(to), key, 0, 1000)
		}
		c.Settle(slot, to)
		from, to = to, from
	}
	waitFor(100 * ms)
	stop()
	g.Wait()
	require.Empty(t, openServers(l))
	require.NoError(t, l.Err())
	r, err := all.Take(t.Context(), "hot", 0)
	require.NoError(t, err)
	require.EqualValues(t, granted.Load(), faultTotal-r.Remaining, "each token is taken once")
	require.Greater(t, granted.Load(), int64(100), "the test has shown too little")
}

func port(s *redistest.Server) string {
	_, port, _ := strings.Cut(s.Addr(), ":")
	return port
}

func TestEachServerOfARingHasABreakerOfItsOwn(t *testing.T) {
	t.Parallel()
	well, ill := redistest.Start(t), redistest.Start(t)
	ring := redis.NewRing(&redis.RingOptions{
		Addrs: map[string]string{"well": well.Addr(), "ill": ill.Addr()}, ContextTimeoutEnabled: true, HeartbeatFrequency: time.Hour,
	})
	t.Cleanup(func() { _ = ring.Close() })
	l := connectTo(t, ring, fleet.LinkConfig{Timeout: time.Second})
	b := countingTaker(l, "ring", fleet.Config{OnOutage: fleet.FailClosed, MaxDenied: limiter.Off})
	ill.Pause()
	defer ill.Continue()
	for i := range 100 {
		key := fmt.Sprint("user", i)
		client, err := ring.GetShardClientForKey("weir:ring:{" + key + "}")
		require.NoError(t, err)
		r, err := b.Take(t.Context(), key, 1)
		require.NoError(t, err)
		require.Equal(t, client.Options().Addr == well.Addr(), r.From == fleet.FromServer, key)
	}
	require.Equal(t, []string{ill.Addr()}, openServers(l))
}

func TestALinkToAClusterShowsTheBreakerOfEachServer(t *testing.T) {
	l := connectTo(t, dialCluster(t, sharedCluster().Addrs()...), fleet.LinkConfig{Timeout: longTimeout, Prefix: keyPrefix(t)})
	b := countingTaker(l, "shown", errorOnOutage)
	for i := range 30 {
		_, err := b.Take(t.Context(), fmt.Sprint("user", i), 1)
		require.NoError(t, err)
	}
	var asked []string
	for addr, b := range l.Breakers() {
		asked = append(asked, addr)
		require.Positive(t, b.Counts().Successes, addr)
	}
	require.ElementsMatch(t, append(sharedCluster().Addrs(), ""), asked, "and the breaker for requests to no server in particular")
	shown := map[string]bool{}
	for s := range l.Observe {
		shown[fmt.Sprint(s)] = true
	}
	text := fmt.Sprint(shown)
	for _, addr := range sharedCluster().Addrs() {
		require.Contains(t, text, addr)
	}
}

func TestAClientThatCannotFollowAClusterIsRefused(t *testing.T) {
	for name, client := range map[string]*redis.Client{"one of three": newClient(t, sharedCluster().Nodes[0])} {
		_, err := fleet.Connect(t.Context(), "main", client, fleet.LinkConfig{Timeout: longTimeout})
		require.EqualError(t, err, "fleet: redis main: part of a cluster, and the client is not a cluster client", name)
		require.ErrorIs(t, err, fleet.ErrServer)
	}
}

// A Ring distributes keys over servers that do not know each other. The server of a key decides
// about it.
func TestKeysOnTheServersOfARing(t *testing.T) {
	one, two := redistest.Start(t), redistest.Start(t)
	ring := redis.NewRing(&redis.RingOptions{
		Addrs: map[string]string{"one": one.Addr(), "two": two.Addr()}, ContextTimeoutEnabled: true, HeartbeatFrequency: time.Hour,
	})
	defer func() { require.NoError(t, ring.Close()) }()
	b := newLimiter(connectTo(t, ring, fleet.LinkConfig{Timeout: longTimeout}), "divided",
		fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: 10}, fleet.Config{OnOutage: fleet.FailError, MaxDenied: limiter.Off})
	const keys, each, callers = 20, 10, 64
	var allowed [keys]atomic.Int64
	var g sync.WaitGroup
	for range callers {
		g.Go(func() {
			for i := range keys {
				r, err := b.Take(t.Context(), fmt.Sprint(i), each/2)
				if err != nil {
					t.Error(err)
				}
				if r.OK {
					allowed[i].Add(each / 2)
				}
			}
		})
	}
	g.Wait()
	for i := range allowed {
		require.EqualValues(t, each, allowed[i].Load(), "key %d", i)
	}
	require.Positive(t, requestCount(one))
	require.Positive(t, requestCount(two))
}
