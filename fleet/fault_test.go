package fleet_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/internal/testenv"
)

// faultyServer is a Redis that has a fault.
type faultyServer struct {
	t       *testing.T
	server  *redistest.Server
	replica *redistest.Server // nil if the fault needs none
	proxy   *redistest.Proxy
}

// fault is a failure of a Redis.
type fault struct {
	name    string
	options redistest.Options
	replica bool
	happens func(s faultyServer)

	// how often Redis may forget the taken tokens; each time, another burst may be allowed
	forgets   int
	outage    bool // whether Redis is unavailable meanwhile, for long enough to open the breaker
	unnoticed bool // whether no caller may notice
}

func waitFor(d time.Duration) { <-time.After(d) }

const outageLength = 700 * time.Millisecond

var faults = []fault{
	{name: "kill -9, nothing on disk", outage: true, forgets: 1, happens: func(s faultyServer) {
		s.server.Kill()
		waitFor(outageLength)
		s.server.Restart()
	}},
	{name: "kill -9, every write on disk", outage: true, options: redistest.Options{AppendOnly: true}, happens: func(s faultyServer) {
		s.server.Kill()
		waitFor(outageLength)
		s.server.Restart()
	}},
	{name: "SIGSTOP for 5 s", outage: true, happens: func(s faultyServer) {
		s.server.Pause()
		waitFor(5 * time.Second)
		s.server.Continue()
	}},
	{name: "each message late by 300 ms", outage: true, happens: func(s faultyServer) {
		s.proxy.Delay(300 * time.Millisecond)
		waitFor(outageLength)
		s.proxy.Delay(0)
	}},
	{name: "requests lost", outage: true, happens: func(s faultyServer) {
		s.proxy.Swallow(true, false)
		waitFor(outageLength)
		s.proxy.Swallow(false, false)
	}},
	{name: "answers lost", outage: true, happens: func(s faultyServer) {
		s.proxy.Swallow(false, true)
		waitFor(outageLength)
		s.proxy.Swallow(false, false)
	}},
	{name: "connections refused", outage: true, happens: func(s faultyServer) {
		s.proxy.Refuse()
		waitFor(outageLength)
		s.proxy.Accept()
	}},
	{name: "connections cut every 20 ms", happens: func(s faultyServer) {
		for range 35 {
			s.proxy.Cut()
			waitFor(20 * time.Millisecond)
		}
	}},
	{name: "40 answers cut off", happens: func(s faultyServer) {
		for range 40 {
			s.proxy.LoseReplies(1)
			waitFor(outageLength / 40)
		}
	}},
	{name: "failover to a replica", outage: true, replica: true, forgets: 1, happens: func(s faultyServer) {
		s.server.Kill()
		waitFor(outageLength)
		s.replica.Promote()
		s.proxy.Lead(s.replica.Addr())
	}},
	{name: "a replica in the master's place", outage: true, replica: true, happens: func(s faultyServer) {
		s.proxy.Lead(s.replica.Addr())
		waitFor(outageLength)
		s.proxy.Lead(s.server.Addr())
	}},
	{name: "SCRIPT FLUSH every 50 ms", unnoticed: true, happens: func(s faultyServer) {
		for range 14 {
			s.server.Do("SCRIPT", "FLUSH")
			waitFor(50 * time.Millisecond)
		}
	}},
	{name: "FLUSHALL three times", unnoticed: true, forgets: 3, happens: func(s faultyServer) {
		for range 3 {
			s.server.Do("FLUSHALL")
			waitFor(outageLength / 3)
		}
	}},
	{name: "memory full, the least used evicted", unnoticed: true, forgets: 5, options: redistest.Options{Args: []string{
		"--maxmemory", "8mb", "--maxmemory-policy", "allkeys-lru",
	}}, happens: func(s faultyServer) { s.fill(30_000) }},
	{name: "memory full, only our keys to evict", forgets: 200, options: redistest.Options{Args: []string{
		"--maxmemory", "8mb", "--maxmemory-policy", "volatile-ttl",
	}}, happens: func(s faultyServer) {
		s.fill(40_000)
		s.server.Do("CONFIG", "SET", "maxmemory", "0")
	}},
	{name: "memory full, nothing evicted", outage: true, options: redistest.Options{Args: []string{"--maxmemory-policy", "noeviction"}}, happens: func(s faultyServer) {
		s.server.Do("CONFIG", "SET", "maxmemory", "1")
		waitFor(outageLength)
		s.server.Do("CONFIG", "SET", "maxmemory", "0")
	}},
	{name: "loading its data", outage: true, options: redistest.Options{Args: []string{
		"--key-load-delay", "400", "--loading-process-events-interval-bytes", "1024",
	}}, happens: func(s faultyServer) {
		filler := s.server.Client().Pipeline()
		for i := range 2000 {
			filler.Set(s.t.Context(), fmt.Sprint("filler", i), "", 0)
		}
		_, err := filler.Exec(s.t.Context())
		require.NoError(s.t, err)
		s.server.Do("DEBUG", "RELOAD")
	}},
	{name: "too many clients", outage: true, happens: func(s faultyServer) {
		held := s.server.Client() // keeps its connection while new ones are refused
		require.NoError(s.t, held.ConfigSet(s.t.Context(), "maxclients", "1").Err())
		s.proxy.Cut()
		waitFor(outageLength)
		require.NoError(s.t, held.ConfigSet(s.t.Context(), "maxclients", "1000").Err())
	}},
}

// fill writes keys with values of 200 bytes while there is room.
func (s faultyServer) fill(keys int) {
	c := s.server.Client()
	for i := 0; i < keys; i += 100 {
		_, err := c.Pipelined(s.t.Context(), func(p redis.Pipeliner) error {
			for j := range 100 {
				p.Set(s.t.Context(), fmt.Sprint("filler", i+j), make([]byte, 200), 0)
			}
			return nil
		})
		if !redis.IsOOMError(err) {
			require.NoError(s.t, err)
		}
	}
}

// Redis has a fault under load. With -v, the test prints a table of measurements.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			s := faultyServer{t: t, server: f.options.Start(t)}
			if f.replica {
				s.replica = s.server.StartReplica()
			}
			s.proxy = redistest.NewProxy(t, s.server.Addr())
			client := redis.NewClient(&redis.Options{Addr: s.proxy.Addr(), ContextTimeoutEnabled: true})
			t.Cleanup(func() { _ = client.Close() })
			timeout := faultTimeout
			if f.unnoticed { // a late call has a different cause: a busy machine
				timeout = longTimeout
			}
			l := newFaultLoad(t, client, timeout)
			l.run(t, func() {
				waitFor(200 * time.Millisecond)
				f.happens(s)
			})
			taken := l.taken(t)
			t.Log(l.tableRow(t, taken))
			f.check(t, l, taken)
		})
	}
}

// A server that continues after a stop receives only the commands that are being sent at that
// moment, not all requests that were made during the stop.
func TestServerReceivesNoStampedeAfterAStop(t *testing.T) {
	t.Parallel()
	const callers = 64
	server := redistest.Start(t)
	l := newFaultLoad(t, newClient(t, server), faultTimeout)
	y := l.results[countingLimiter]
	var attempts atomic.Int64
	var g sync.WaitGroup
	for range callers { // have them connected
		g.Go(func() {
			if err := y.take(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	g.Wait()
	granted, lost := y.granted, y.lost // on a slow machine an answer may have come too late
	server.Pause()
	end := testenv.Running() + 2*time.Second
	for range callers {
		g.Go(func() {
			for testenv.Running() < end {
				attempts.Add(1)
				if err := y.take(t.Context()); err != nil {
					t.Error(err)
				}
				waitFor(time.Millisecond)
			}
		})
	}
	g.Wait()
	server.Continue()
	l.awaitClosed(t)
	require.Eventually(t, func() bool {
		require.NoError(t, y.take(t.Context()))
		return y.granted > granted
	}, time.Minute, time.Millisecond)
	require.Equal(t, granted+1, y.granted)
	taken := l.taken(t)
	t.Logf("%d attempts in 2 s, of which %d were being sent when the server continued", attempts.Load(), taken-y.granted)
	require.Greater(t, attempts.Load(), int64(20*callers))
	require.LessOrEqual(t, taken-y.granted, callers+lost, "commands in the queue were sent after the breaker opened")
	require.LessOrEqual(t, taken-y.granted, y.lost, "tokens were taken twice")
}

func (f fault) check(t *testing.T, l *faultLoad, taken int) {
	t.Helper()
	counted := l.results[countingLimiter]
	require.LessOrEqual(t, l.worst(), faultTimeout+timeoutSlack, "the longest call")
	require.LessOrEqual(t, taken, counted.granted+counted.lost, "tokens were taken twice")
	if f.forgets == 0 {
		require.GreaterOrEqual(t, taken, counted.granted, "tokens were granted but not taken")
	}
	require.LessOrEqual(t, l.overAllowance(), f.forgets*faultBurst, "Redis exceeded the allowance")

	require.Zero(t, l.results["fail-closed"].byPolicy, "granted by the policy FailClosed")
	require.Zero(t, l.results["fail-error"].byPolicy, "granted by the policy FailError")
	local := l.results["fail-local"]
	require.LessOrEqual(t, float64(local.byPolicy), faultShare*float64(l.allowance())+1, "granted by the policy FailLocal")
	if f.unnoticed {
		require.Zero(t, counted.errors, "errors")
		require.Zero(t, l.opened.Load())
	}
	if f.outage {
		require.Positive(t, l.results["fail-open"].byPolicy, "granted by the policy FailOpen")
		require.Positive(t, local.byPolicy, "granted by the policy FailLocal")
		require.Positive(t, l.results["fail-error"].errors)
		require.Positive(t, l.opened.Load())
	}
}
