package weirredis_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirredis"
)

// reply is a reply with an error, as go-redis returns it.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

var outcomes = []struct {
	err  error
	want breaker.Outcome
}{
	{nil, breaker.Success},
	{reply("redis: nil"), breaker.Success},
	{reply("redis: transaction failed"), breaker.Success},
	{reply("WRONGTYPE Operation against a key holding the wrong kind of value"), breaker.Success},
	{reply("NOAUTH Authentication required."), breaker.Success},
	{reply("MOVED 3999 127.0.0.1:6381"), breaker.Success},
	{reply("BUSYGROUP Consumer Group name already exists"), breaker.Success},
	{reply("ERR unknown command 'foo'"), breaker.Success},
	{reply(""), breaker.Success},
	{reply("LOADING Redis is loading the dataset in memory"), breaker.Failure},
	{reply("CLUSTERDOWN The cluster is down"), breaker.Failure},
	{reply("MASTERDOWN Link with MASTER is down"), breaker.Failure},
	{reply("OOM command not allowed when used memory > 'maxmemory'."), breaker.Failure},
	{reply("READONLY You can't write against a read only replica."), breaker.Failure},
	{reply("TRYAGAIN Multiple keys request during rehashing of slot"), breaker.Failure},
	{reply("BUSY Redis is busy running a script."), breaker.Failure},
	{reply("ERR LOADING by a proxy"), breaker.Failure},
	{reply("MISCONF Redis is configured to save RDB snapshots"), breaker.Failure},
	{reply("NOREPLICAS Not enough good replicas to write."), breaker.Failure},
	{reply("ERR max number of clients reached"), breaker.Overloaded},
	{fmt.Errorf("get: %w", reply("LOADING")), breaker.Failure},
	{fmt.Errorf("get: %w", reply("redis: nil")), breaker.Success},
	{io.EOF, breaker.Failure},
	{errors.New("read tcp: i/o timeout"), breaker.Failure},
	{context.DeadlineExceeded, breaker.Failure},
	{context.Canceled, breaker.Ignored},
	{fmt.Errorf("get: %w", context.Canceled), breaker.Ignored},
	{errors.New("redis: connection pool timeout"), breaker.Ignored},
	{fmt.Errorf("get: %w", errors.New("redis: connection pool exhausted")), breaker.Ignored},
	{errors.New("redis: client is closed"), breaker.Ignored},
	{fmt.Errorf("inner: %w", weir.ErrRefused), breaker.Ignored},
}

func TestClassify(t *testing.T) {
	for _, o := range outcomes {
		require.Equal(t, o.want, weirredis.Classify(o.err), "%v", o.err)
	}
}

func TestALimiterRecordsTheOutcomes(t *testing.T) {
	for _, o := range outcomes {
		g := weir.New("cache", weir.Config{Breaker: breaker.Config{Classify: func(error) breaker.Outcome {
			t.Error("Config.Classify would take redis.Nil for a failure")
			return breaker.Failure
		}}})
		l := weirredis.New(g)
		l.ReportResult(io.EOF) // of no command
		require.NoError(t, l.Allow())
		l.ReportResult(o.err)
		l.ReportResult(io.EOF)
		want := map[breaker.Outcome][3]int64{breaker.Success: {1}, breaker.Failure: {0, 1}, breaker.Overloaded: {0, 1}, breaker.Ignored: {0, 0, 1}}[o.want]
		all := g.Breaker().Totals()
		require.Equal(t, want, [3]int64{all.Successes, all.Failures, all.Ignored}, "%v", o.err)
	}
}

func TestALimiterOpensAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("cache", weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 3, Recovery: breaker.Off}})
		l := weirredis.New(g)
		for range 3 {
			require.NoError(t, l.Allow())
			l.ReportResult(io.EOF)
		}
		err := l.Allow()
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.ErrorIs(t, err, weir.ErrRefused)
		require.Positive(t, weir.RetryAfter(err))
		time.Sleep(2 * time.Second)
		for range 3 {
			require.NoError(t, l.Allow())
			l.ReportResult(reply("redis: nil"))
		}
		require.Equal(t, breaker.Closed, g.Breaker().State())
	})
}

// A result belongs to the command that was allowed first. So a late failure from before the breaker
// opened is no probe.
func TestALateResultIsNoProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("cache", weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 3, Recovery: breaker.Off, Probes: 1}})
		l := weirredis.New(g)
		for range 4 {
			require.NoError(t, l.Allow())
		}
		for range 3 {
			l.ReportResult(io.EOF)
		}
		time.Sleep(2 * time.Second)
		require.NoError(t, l.Allow()) // the probe
		l.ReportResult(io.EOF)        // of the command from before
		require.Equal(t, breaker.HalfOpen, g.Breaker().State())
		l.ReportResult(nil)
		require.Equal(t, breaker.Closed, g.Breaker().State())
	})
}

// go-redis asks for the handshake of a new connection while the command waits that needs it.
func TestTheHandshakeOfAnAllowedCommandPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handshakeAndCommand := func(l *weirredis.Limiter, result error) {
			t.Helper()
			for range 4 {
				require.NoError(t, l.Allow())
				l.ReportResult(nil)
			}
			l.ReportResult(result)
		}
		g := weir.New("cache", weir.Config{Breaker: breaker.Config{ConsecutiveFailures: 3, Probes: 1}})
		l := weirredis.New(g)
		for range 3 {
			require.NoError(t, l.Allow())
			l.ReportResult(io.EOF)
		}
		require.ErrorIs(t, l.Allow(), breaker.ErrOpen)
		time.Sleep(2 * time.Second)
		require.NoError(t, l.Allow())
		handshakeAndCommand(l, io.EOF)
		require.Equal(t, breaker.Open, g.Breaker().State(), "the result of the command counts")
		time.Sleep(2 * time.Second)
		require.NoError(t, l.Allow())
		handshakeAndCommand(l, nil)
		require.Equal(t, breaker.Recovering, g.Breaker().State())
		for i := 0; g.Breaker().State() != breaker.Closed; i++ {
			require.Less(t, i, 100_000)
			if l.Allow() == nil {
				handshakeAndCommand(l, nil)
			}
			time.Sleep(time.Millisecond)
		}

		bounded := weirredis.New(weir.New("cache", weir.Config{MaxConcurrent: 1}))
		for range 3 {
			require.NoError(t, bounded.Allow())
			handshakeAndCommand(bounded, nil)
		}
	})
}

func TestALimiterReleasesSlotsAndTokens(t *testing.T) {
	l := weirredis.New(weir.New("cache", weir.Config{MaxConcurrent: 2}))
	for range 3 {
		for range 4 { // twice as many as the bound: see the package comment
			require.NoError(t, l.Allow())
		}
		require.ErrorIs(t, l.Allow(), weir.ErrRefused)
		for range 4 {
			l.ReportResult(reply("redis: nil"))
		}
	}
	limited := weirredis.New(weir.New("cache", weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 1}))
	require.NoError(t, limited.Allow())
	require.ErrorIs(t, limited.Allow(), limiter.ErrLimited)
}

// Many commands at once: each permit is used once, in whatever order the results come.
func TestConcurrentCommands(t *testing.T) {
	const callers, each = 8, 2000
	g := weir.New("cache", weir.Config{MaxConcurrent: callers})
	l := weirredis.New(g)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := range each {
				if err := l.Allow(); err != nil {
					t.Error(err)
					return
				}
				if i%2 == 0 {
					l.ReportResult(nil)
				} else {
					l.ReportResult(context.Canceled)
				}
			}
		})
	}
	wg.Wait()
	all := g.Breaker().Totals()
	require.EqualValues(t, callers*each/2, all.Successes)
	require.EqualValues(t, callers*each/2, all.Ignored)
	l.ReportResult(io.EOF)
	require.Zero(t, g.Breaker().Totals().Failures)
}

func TestNewWithoutAGate(t *testing.T) {
	require.PanicsWithValue(t, "weirredis: the gate is nil", func() { weirredis.New(nil) })
}

func BenchmarkCommand(b *testing.B) {
	l := weirredis.New(weir.New("cache", weir.Config{}))
	b.ReportAllocs()
	for b.Loop() {
		_ = l.Allow()
		l.ReportResult(nil)
	}
}
