package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/window"
)

// lies are replies of a server that is broken, hostile or not Redis.
var lies = map[string]string{
	"a list that is too large":      "*1099511627776\r\n:1\r\n",
	"a list with the largest size":  "*9223372036854775807\r\n:1\r\n",
	"a text with the largest size":  "$9223372036854775807\r\n",
	"a text in a list":              "*2\r\n$9223372036854775806\r\n",
	"a map":                         "%9223372036854775807\r\n",
	"an attribute":                  "|9223372036854775807\r\n",
	"a negative size":               "*-5\r\n",
	"deep lists":                    strings.Repeat("*1\r\n", 1_000_000),
	"an error of many bytes":        "-" + strings.Repeat("x", 20<<20) + "\r\n",
	"no list":                       ":1\r\n",
	"null":                          "*-1\r\n",
	"texts":                         "*5\r\n" + strings.Repeat("$1\r\na\r\n", 5),
	"a number that is too large":    "*1\r\n:99999999999999999999\r\n",
	"HTTP":                          "HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n<html>",
	"the largest numbers":           integerReply(1, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64),
	"the least numbers":             integerReply(0, math.MinInt64, math.MinInt64, math.MinInt64, math.MinInt64),
	"two of the largest numbers":    integerReply(math.MaxInt64, math.MaxInt64),
	"two of the least numbers":      integerReply(math.MinInt64, math.MinInt64),
	"a negative limit":              integerReply(1, -1, 0, 0, 0),
	"more left than the limit":      integerReply(1, 10, 11, 0, 0),
	"a wait that is negative":       integerReply(0, 10, 0, -2, 0),
	"a wait of an allowed request":  integerReply(1, 10, 0, 1, 0),
	"neither allowed nor refused":   integerReply(2, 10, 0, 0, 0),
	"more in the bucket than fits":  integerReply(-20_000_000, 0),
	"calls with the largest counts": integerReply(append([]int64{1, 1, 1}, repeat(math.MaxInt64, 13+70)...)...),
	"calls with the least counts":   integerReply(append([]int64{1, 1, 1}, repeat(math.MinInt64, 13+70)...)...),
	"calls with a large time":       integerReply(append([]int64{math.MaxInt64}, repeat(1, 15+70)...)...),
	"calls with too many buckets":   integerReply(repeat(1, 16+700)...),
}

func repeat(v int64, n int) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = v
	}
	return all
}

// lyingLimits are limits of all kinds of scripts.
var lyingLimits = map[string]fleet.Limit{
	"quick":  fleet.TokenBucket{Rate: limiter.PerSecond(10), Burst: 10},
	"bucket": fleet.TokenBucket{Rate: limiter.PerSecond(7), Burst: 10},
	"log":    fleet.SlidingLog{Limit: 10, Window: time.Second},
	"cell":   rediscell.Limit(9, 10, time.Second),
}

// clientKinds make a client of each kind for a server.
var clientKinds = map[string]func(addr string) redis.UniversalClient{
	"client": func(addr string) redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, DisableIdentity: true, MaxRetries: -1})
	},
	"cluster": func(addr string) redis.UniversalClient { return lyingClusterClient(addr) },
	"ring": func(addr string) redis.UniversalClient {
		return redis.NewRing(&redis.RingOptions{
			Addrs: map[string]string{"a": addr}, ContextTimeoutEnabled: true, DisableIdentity: true, MaxRetries: -1,
			// replies on connections that were made before Connect are not checked
			HeartbeatFrequency: time.Hour,
		})
	},
}

// lyingClusterClient returns a client that keeps no connections.
func lyingClusterClient(addr string) *redis.ClusterClient {
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{addr}, ContextTimeoutEnabled: true, DisableIdentity: true, MaxRedirects: 1, ConnMaxLifetime: 1,
	})
}

// slotsReply is a reply to CLUSTER SLOTS: each server has an equal part of the slots.
func slotsReply(addrs ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(addrs))
	for i, addr := range addrs {
		host, port, _ := net.SplitHostPort(addr)
		fmt.Fprintf(&b, "*3\r\n:%d\r\n:%d\r\n*2\r\n%s:%s\r\n", 16384*i/len(addrs), 16384*(i+1)/len(addrs)-1, bulkReply(host), port)
	}
	return b.String()
}

// newLyingServer returns a server with redis-cell that is the only one of a Cluster.
func newLyingServer(t *testing.T, answers map[string]string) *fakeServer {
	f := newFakeServer(t, map[string]string{"command": knowsCell})
	f.setReply("cluster", slotsReply(f.addr))
	for command, reply := range answers {
		f.setReply(command, reply)
	}
	return f
}

// askLyingServer uses all features with a server that gives one reply to each script. It returns an
// error if a result is out of range.
func askLyingServer(t *testing.T, kind, reply string) error {
	f := newLyingServer(t, nil)
	client := clientKinds[kind](f.addr)
	defer func() { _ = client.Close() }()
	l := connectTo(t, client, fleet.LinkConfig{Timeout: 20 * ms, Breaker: breaker.Config{ConsecutiveFailures: 1000, MinCalls: 1000}})
	for _, command := range []string{"evalsha", "eval", "cl.throttle"} {
		f.setReply(command, reply)
	}
	for name, limit := range lyingLimits {
		for _, lease := range []int{0, 10} {
			b := newLimiter(l, name, limit, fleet.Config{OnOutage: fleet.FailError, MaxLease: lease})
			for _, n := range []int{1, 1, 0} { // a script answers 0, also if there is redis-cell
				r, err := b.Take(t.Context(), "user", n)
				if err == nil && (r.Limit < 0 || r.Remaining < 0 || r.Remaining > r.Limit || r.RetryAfter < 0 || r.ResetAfter < 0 || r.OK && r.RetryAfter > 0) {
					return errors.New(name + " is out of range")
				}
			}
			_ = b.Refund(t.Context(), time.Now(), "user", 1)
		}
	}
	calls := newCalls(l, "calls", fleet.CallsConfig{Interval: 10 * ms})
	calls.Record(window.Failure, 0)
	ctx, cancel := context.WithTimeout(t.Context(), 30*ms)
	defer cancel()
	if err := calls.Run(ctx); err != nil {
		return err
	}
	if n := calls.Counts(); n.Failures < 1 || n.Calls() < n.Failures || calls.Totals().Calls() < 1 || n.FailureRate() > 1 {
		return errors.New("counts are out of range")
	}
	return nil
}

func TestALyingServerHarmsNothing(t *testing.T) {
	for name, reply := range lies {
		for kind := range clientKinds {
			t.Run(name+", "+kind, func(t *testing.T) {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				require.NoError(t, askLyingServer(t, kind, reply))
				runtime.ReadMemStats(&after)
				// about 60 replies are read; a text that does arrive takes its size several times
				require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(50<<20+1000*len(reply)))
			})
		}
	}
}

// A server of a Cluster redirects to one that lies, which the client knew before Connect.
func TestALyingServerThatOthersRedirectTo(t *testing.T) {
	for _, redirect := range []string{"MOVED", "ASK"} {
		for name, reply := range lies {
			t.Run(redirect+", "+name, func(t *testing.T) {
				first, second := newFakeServer(t, nil), newFakeServer(t, map[string]string{"asking": "+OK\r\n"})
				for _, f := range []*fakeServer{first, second} {
					f.setReply("cluster", slotsReply(second.addr, first.addr))
				}
				client := lyingClusterClient(first.addr)
				defer func() { _ = client.Close() }()
				err := client.ForEachMaster(t.Context(), func(ctx context.Context, c *redis.Client) error { return c.Ping(ctx).Err() })
				require.NoError(t, err)
				// Connect asks the first server, which also has foo
				l := connectTo(t, client, fleet.LinkConfig{Timeout: longTimeout})
				first.setReply("evalsha", "-"+redirect+" 12182 "+second.addr+"\r\n")
				second.setReply("evalsha", reply)
				_, err = newBucket(l, fleet.Config{OnOutage: fleet.FailClosed}).Take(t.Context(), "foo", 1)
				require.NoError(t, err)
				shown := slices.ContainsFunc(second.commands(), func(c string) bool { return strings.HasPrefix(c, "evalsha") })
				require.True(t, shown, "the second server was not asked")
			})
		}
	}
}

// The heartbeat of a Ring has a goroutine of its own, where a panic ends the process.
func TestALyingServerAnswersTheHeartbeatOfARing(t *testing.T) {
	f := newFakeServer(t, nil)
	connected, beats := make(chan struct{}), make(chan error, 100)
	ring := redis.NewRing(&redis.RingOptions{
		Addrs: map[string]string{"a": f.addr}, ContextTimeoutEnabled: true, DisableIdentity: true, HeartbeatFrequency: ms,
		HeartbeatFn: func(ctx context.Context, c *redis.Client) bool {
			<-connected
			err := c.Ping(ctx).Err()
			select {
			case beats <- err:
			default:
			}
			return err == nil
		},
	})
	defer func() { _ = ring.Close() }()
	connectTo(t, ring, fleet.LinkConfig{Timeout: longTimeout})
	f.setReply("ping", "$9223372036854775807\r\n")
	close(connected)
	require.ErrorContains(t, <-beats, "a text of 9223372036854775807 bytes")
}

// Not even the questions that Connect and the client ask may end the process.
func TestConnectToALyingServer(t *testing.T) {
	t.Parallel()
	for name, reply := range lies {
		for _, command := range []string{"info", "command", "hello", "client", "cluster", "ping", "all"} {
			for kind, connect := range clientKinds {
				t.Run(name+" to "+command+", "+kind, func(t *testing.T) {
					answers := map[string]string{command: reply}
					if command == "all" {
						for _, command := range []string{"info", "command", "hello", "client", "cluster", "ping", "eval", "evalsha"} {
							answers[command] = reply
						}
					}
					f := newLyingServer(t, answers)
					client := connect(f.addr)
					defer func() { _ = client.Close() }()
					l, err := fleet.Connect(t.Context(), "lies", client, fleet.LinkConfig{Timeout: 50 * ms})
					if err != nil {
						return
					}
					_, err = newBucket(l, fleet.Config{OnOutage: fleet.FailClosed}).Take(t.Context(), "user", 1)
					require.NoError(t, err)
				})
			}
		}
	}
}

func FuzzReplies(f *testing.F) {
	for _, reply := range lies {
		if len(reply) < 1000 {
			f.Add(reply)
		}
	}
	f.Add(integerReply(1, 10, 9, 0, 100_000))
	f.Add(integerReply(-900_000, 0))
	f.Add(integerReply(repeat(1, 16+7*10)...))
	f.Fuzz(func(t *testing.T, reply string) {
		if err := askLyingServer(t, "client", reply); err != nil {
			t.Errorf("%q: %v", reply, err)
		}
	})
}
