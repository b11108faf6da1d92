package fleet_test

import (
	"context"
	"io"
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

// replyLoser is a hook that drops the first reply that at least the given number of callers wait
// for.
type replyLoser struct {
	callers int
	done    atomic.Bool
}

func (*replyLoser) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *replyLoser) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if n, ok := cmd.Args()[min(2, len(cmd.Args())-1)].(int); ok && cmd.Name() == "evalsha" && n >= h.callers && h.done.CompareAndSwap(false, true) {
			_ = next(ctx, cmd)
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		return next(ctx, cmd)
	}
}

func (*replyLoser) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A lost connection is one failure, however many callers waited for its reply.
func TestLostReplyOfABatchIsOneFailure(t *testing.T) {
	t.Parallel()
	const many = 10
	c := newClient(t, redistest.Start(t))
	hook := &replyLoser{callers: many}
	l := connectTo(t, c, fleet.LinkConfig{Timeout: longTimeout})
	b := newBucket(l, errorOnOutage)
	_, err := b.Take(t.Context(), "user", 1) // the server knows the script
	require.NoError(t, err)
	c.AddHook(hook)
	var lost, decided atomic.Int64
	var g sync.WaitGroup
	for range 64 {
		g.Go(func() {
			for range 200 {
				if _, err := b.Take(t.Context(), newKey(), 1); err != nil {
					lost.Add(1)
				} else {
					decided.Add(1)
				}
			}
		})
	}
	g.Wait()
	require.GreaterOrEqual(t, lost.Load(), int64(many))
	require.EqualValues(t, 1, l.Breaker().Totals().Failures)
	require.Zero(t, transitions(l.Breaker()))
	require.EqualValues(t, 64*200, lost.Load()+decided.Load())
}

// An error about one key, one slot or one script is not a failure of the server.
func TestWhichRepliesAreFailuresOfTheServer(t *testing.T) {
	t.Parallel()
	for answer, evidence := range map[string]bool{
		"-LOADING Redis is loading the dataset in memory":                                                          true,
		"-READONLY You can't write against a read only replica.":                                                   true,
		"-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":                        true,
		"-CLUSTERDOWN The cluster is down":                                                                         true,
		"-OOM command not allowed when used memory > 'maxmemory'.":                                                 true,
		"-BUSY Redis is busy running a script.":                                                                    true,
		"-MISCONF Redis is configured to save RDB snapshots":                                                       true,
		"-NOREPLICAS Not enough good replicas to write.":                                                           true,
		"-ERR max number of clients reached":                                                                       true,
		"-NOAUTH Authentication required.":                                                                         true,
		"-CLUSTERDOWN Hash slot not served":                                                                        false,
		"-TRYAGAIN Multiple keys request during rehashing of slot":                                                 false,
		"-MOVED 3999 127.0.0.1:1":                                                                                  false,
		"-ASK 3999 127.0.0.1:1":                                                                                    false,
		"-CROSSSLOT Keys in request don't hash to the same slot":                                                   false,
		"-NOPERM No permissions to access a key":                                                                   false,
		"-ERR The user executing the script can't access at least one of the keys":                                 false,
		"-ERR ACL failure in script: User bob has no permissions to access the 'x' key":                            false,
		"-ERR user_script:3: attempt to perform arithmetic on a nil value":                                         false,
		"-WRONGTYPE Operation against a key holding the wrong kind of value":                                       false,
		"-ERR Error running script: @user_script: 12: WRONGTYPE Operation against a key holding the wrong kind of": false,
	} {
		t.Run(answer, func(t *testing.T) {
			f := newFakeServer(t, map[string]string{"evalsha": answer + "\r\n"})
			c := fleet.LinkConfig{Timeout: longTimeout, Breaker: breaker.Config{ConsecutiveFailures: 1, Cooldown: time.Minute}}
			if strings.HasPrefix(answer, "-TRYAGAIN") {
				// the command is sent again for most of the Timeout
				c.Timeout = 2 * time.Second
			}
			l := connectTo(t, f.client(), c)
			b := newBucket(l, errorOnOutage)
			for range 2 {
				_, err := b.Take(t.Context(), "user", 1)
				var store *fleet.StoreError
				require.ErrorAs(t, err, &store)
				require.Equal(t, evidence, l.Breaker().Tripped())
			}
			require.Equal(t, evidence, l.Err() != nil)
		})
	}
}

// While Redis is unavailable, it is asked about once per second, however many decisions there are.
// Soon after it is back, it decides again.
func TestServerThatIsBackIsFoundSoon(t *testing.T) {
	t.Parallel()
	f := newFakeServer(t, map[string]string{"evalsha": "-LOADING Redis is loading the dataset in memory\r\n"})
	l := connectTo(t, f.client(), fleet.LinkConfig{})
	b := tenPerSecondTaker(l, "window", fleet.Config{OnOutage: fleet.FailOpen, MaxDenied: limiter.Off})
	take := func() string {
		r, err := b.Take(t.Context(), "user", 1)
		require.NoError(t, err)
		<-time.After(ms)
		return r.From
	}
	for !l.Breaker().Tripped() {
		take()
	}
	f.commands()
	began, running := time.Now(), testenv.Running()
	for testenv.Running()-running < 5*time.Second {
		require.Equal(t, fleet.FromOutage, take())
	}
	asked := len(f.commands())
	require.LessOrEqual(t, asked, int(time.Since(began)/time.Second), "at most once a second")
	require.GreaterOrEqual(t, asked, 3, "the cooldown must not grow")
	f.setReply("evalsha", integerReply(1, 10, 9, 0, 100_000))
	running = testenv.Running()
	for take() != fleet.FromServer {
		require.Less(t, testenv.Running()-running, 1250*ms+timeoutSlack)
	}
	require.Equal(t, breaker.Closed, l.Breaker().State())
}

// Callers that waited for the failed refill of another caller have only the rest of the Timeout.
func TestALeaseThatFailsCostsNoSecondTimeout(t *testing.T) {
	t.Parallel()
	// a second Timeout would end 1.6 s after the first
	const timeout, slack = 2 * time.Second, 1200 * time.Millisecond
	proxy := redistest.NewProxy(t, redistest.Start(t).Addr())
	c := redis.NewClient(&redis.Options{Addr: proxy.Addr(), ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	b := countingTaker(connectTo(t, c, fleet.LinkConfig{Timeout: timeout}), "lease", fleet.Config{OnOutage: fleet.FailClosed, MaxLease: 10})
	for from := fleet.FromServer; from != fleet.FromLease; {
		r, err := b.Take(t.Context(), "k", 1)
		require.NoError(t, err)
		from = r.From
	}
	proxy.Swallow(false, true)
	defer time.AfterFunc(timeout*8/10, proxy.Cut).Stop()
	var g sync.WaitGroup
	for range 16 {
		g.Go(func() {
			start := testenv.Running()
			r, err := b.Take(t.Context(), "k", 1)
			if took := testenv.Running() - start; took > timeout+slack || err != nil || r.OK && r.From != fleet.FromLease {
				t.Errorf("after %s: %v from %s, %v", took, r.OK, r.From, err)
			}
		})
	}
	g.Wait()
}

// transitions returns the number of state transitions of the breaker.
func transitions(b *breaker.Breaker) (n float64) {
	for s, v := range b.Observe {
		if s.Instrument.Name == "weir.breaker.transitions" {
			n += v
		}
	}
	return n
}
