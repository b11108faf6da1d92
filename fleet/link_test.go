package fleet_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter"
)

func newBucket(l *fleet.Link, c fleet.Config) *fleet.Limiter {
	return newLimiter(l, "bucket", fleet.TokenBucket{Rate: limiter.PerSecond(10), Burst: 10}, c)
}

var errorOnOutage = fleet.Config{OnOutage: fleet.FailError}

func TestConnectValidatesItsArguments(t *testing.T) {
	unbounded := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer func() { require.NoError(t, unbounded.Close()) }()
	_, err := fleet.Connect(t.Context(), "redis", unbounded, fleet.LinkConfig{})
	require.EqualError(t, err, "fleet: the client's ContextTimeoutEnabled is false, must be true")
	_, err = fleet.Connect(t.Context(), "redis", nil, fleet.LinkConfig{Timeout: time.Hour, Prefix: "{x}"})
	require.EqualError(t, err, "fleet: Timeout is 1h0m0s, must lie between 1ms and 1m0s (or be 0 for the default)\n"+
		"fleet: Prefix is \"{x}\", must have no braces\nfleet: the client is nil")
}

func TestConnectRefusesAnOldServer(t *testing.T) {
	f := newFakeServer(t, map[string]string{"info": bulkReply("redis_version:5.0.14\r\n")})
	_, err := fleet.Connect(t.Context(), "main", f.client(), fleet.LinkConfig{Timeout: longTimeout})
	require.ErrorIs(t, err, fleet.ErrServer)
	require.EqualError(t, err, "fleet: redis main: older than version 6")
}

func TestConnectAcceptsAServerThatHidesItsVersion(t *testing.T) {
	f := newFakeServer(t, map[string]string{"info": "-NOPERM this user has no permissions to run the 'info' command\r\n"})
	_, err := fleet.Connect(t.Context(), "main", f.client(), fleet.LinkConfig{Timeout: longTimeout})
	require.NoError(t, err)
}

func TestOldServerIsDetectedAfterConnect(t *testing.T) {
	f := newFakeServer(t, map[string]string{"info": "-LOADING Redis is loading the dataset in memory\r\n"})
	l, err := fleet.Connect(t.Context(), "main", f.client(), fleet.LinkConfig{Timeout: longTimeout})
	require.NoError(t, err)
	b := newBucket(l, fleet.Config{OnOutage: fleet.FailOpen})
	r, err := b.Take(t.Context(), "user", 1)
	require.NoError(t, err)
	require.Equal(t, fleet.FromOutage, r.From)
	f.setReply("info", bulkReply("redis_version:4.0.0\r\n"))
	_, err = b.Take(t.Context(), "user", 1)
	require.ErrorIs(t, err, fleet.ErrServer, "no policy applies to a server that cannot be used")
}

func TestAccessErrorsContainNoSecrets(t *testing.T) {
	locked := redistest.Options{Password: "open sesame"}.Start(t)
	sealed := redistest.Options{TLS: true}.Start(t)
	for name, c := range map[string]struct {
		to   *redistest.Server
		set  func(*redis.Options)
		want string
	}{
		"no password":       {locked, func(o *redis.Options) { o.Password = "" }, "fleet: redis main: access denied"},
		"a wrong password":  {locked, func(o *redis.Options) { o.Password = "hunter2" }, "fleet: redis main: access denied"},
		"a wrong user":      {locked, func(o *redis.Options) { o.Username, o.Password = "bob", "hunter2" }, "fleet: redis main: access denied"},
		"unknown authority": {sealed, func(o *redis.Options) { o.TLSConfig.RootCAs = nil }, "fleet: redis main: no TLS with an accepted certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.to.Options()
			o.ContextTimeoutEnabled = true
			c.set(o)
			client := redis.NewClient(o)
			defer func() { require.NoError(t, client.Close()) }()
			_, err := fleet.Connect(t.Context(), "main", client, fleet.LinkConfig{Timeout: longTimeout})
			require.EqualError(t, err, c.want)
			require.ErrorIs(t, err, fleet.ErrServer)
		})
	}
	for _, s := range []*redistest.Server{locked, sealed} {
		b := newBucket(connectTo(t, newClient(t, s), fleet.LinkConfig{Timeout: longTimeout}), errorOnOutage)
		r, err := b.Take(t.Context(), "user", 1)
		require.NoError(t, err)
		require.True(t, r.OK)
	}
}

func TestAForgottenScriptIsSentAgain(t *testing.T) {
	s := redistest.Start(t)
	b := newBucket(connectTo(t, newClient(t, s), fleet.LinkConfig{Timeout: longTimeout}), errorOnOutage)
	for want := 9; want >= 7; want-- {
		r, err := b.Take(t.Context(), "user", 1)
		require.NoError(t, err)
		require.Equal(t, want, r.Remaining)
		s.Do("SCRIPT", "FLUSH")
	}
	require.Equal(t, 1+3, s.Calls()["eval"], "one by Connect, and one per script")
}

// A server may have decided before its reply is lost. It is not asked again, whatever the retries
// of the client.
func TestNothingIsTakenTwice(t *testing.T) {
	s := redistest.Start(t)
	proxy := redistest.NewProxy(t, s.Addr())
	o := s.Options()
	o.Addr, o.ContextTimeoutEnabled, o.MaxRetries = proxy.Addr(), true, 10
	c := redis.NewClient(o)
	defer func() { require.NoError(t, c.Close()) }()
	b := newBucket(connectTo(t, c, fleet.LinkConfig{Timeout: longTimeout}), errorOnOutage)
	r, err := b.Take(t.Context(), "user", 1)
	require.NoError(t, err)
	require.Equal(t, 9, r.Remaining)
	before := s.Calls()["evalsha"]

	proxy.LoseReplies(1)
	_, err = b.Take(t.Context(), "user", 1)
	require.ErrorIs(t, err, fleet.ErrUnavailable)
	require.EqualError(t, err, "fleet: redis "+t.Name()+": no connection")
	require.Equal(t, before+1, s.Calls()["evalsha"])
}

func TestErrorRepliesAreNotRetried(t *testing.T) {
	for answer, want := range map[string]string{
		"-LOADING Redis is loading the dataset in memory":                                           fleet.FaultLoading,
		"-READONLY You can't write against a read only replica. script: ab12, on @user_script:1.":   fleet.FaultReadOnly,
		"-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":         fleet.FaultMasterDown,
		"-CLUSTERDOWN The cluster is down":                                                          fleet.FaultClusterDown,
		"-MOVED 3999 127.0.0.1:1":                                                                   fleet.FaultMoved,
		"-ASK 3999 127.0.0.1:1":                                                                     fleet.FaultMoved,
		"-OOM command not allowed when used memory > 'maxmemory'. script: ab12, on @user_script:1.": fleet.FaultOutOfMemory,
		"-ERR Error running script (call to f_ab12): @user_script:12: @user_script: 12: -OOM command not allowed when used memory > 'maxmemory'.": fleet.FaultOutOfMemory,
		"-BUSY Redis is busy running a script.":                                                                              fleet.FaultBusy,
		"-MISCONF Redis is configured to save RDB snapshots":                                                                 fleet.FaultBusy,
		"-NOREPLICAS Not enough good replicas to write.":                                                                     fleet.FaultBusy,
		"-ERR max number of clients reached":                                                                                 fleet.FaultBusy,
		"-ERR The user executing the script can't run this command or subcommand script: ab12, on @user_script:1.":           fleet.FaultDenied,
		"-ERR ACL failure in script: User bob has no permissions to run the 'time' command script: ab12, on @user_script:1.": fleet.FaultDenied,
		"-NOAUTH Authentication required.":                                                                                   fleet.FaultDenied,
		"-NOPERM this user has no permissions to run the 'evalsha' command":                                                  fleet.FaultDenied,
		"-ERR user_script:3: attempt to perform arithmetic on a nil value":                                                   fleet.FaultOther,
	} {
		t.Run(want, func(t *testing.T) {
			f := newFakeServer(t, map[string]string{"evalsha": answer + "\r\n"})
			b := newBucket(connectTo(t, f.client(), fleet.LinkConfig{Timeout: longTimeout}), errorOnOutage)
			_, err := b.Take(t.Context(), "user", 1)
			require.Len(t, f.commands(), 1)
			var store *fleet.StoreError
			require.ErrorAs(t, err, &store)
			require.Equal(t, want, store.Fault, err)
			require.ErrorIs(t, err, fleet.ErrUnavailable)
			require.NotContains(t, err.Error(), "script")
			require.NotContains(t, err.Error(), "127.0.0.1")
		})
	}
}

func TestBreakerOpensForASilentServer(t *testing.T) {
	t.Parallel()
	f := newFakeServer(t, map[string]string{"evalsha": ""})
	var l *fleet.Link
	var b *fleet.Limiter
	var sent []string
	testenv.Undisturbed(time.Second/2, func() {
		// without a processor, the Timeout would be over before a command is sent
		l = connectTo(t, f.client(), fleet.LinkConfig{Timeout: time.Second, Breaker: breaker.Config{Cooldown: time.Minute}})
		b = newBucket(l, errorOnOutage)
		f.commands()
		for range 5 {
			began := testenv.Running()
			_, err := b.Take(t.Context(), "user", 1)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, err, fleet.ErrUnavailable)
			require.Less(t, testenv.Running()-began, time.Second+timeoutSlack)
		}
		sent = f.commands()
	})
	require.Len(t, sent, 5)
	_, err := b.Take(t.Context(), "user", 1)
	require.NotErrorIs(t, err, weir.ErrRefused)
	require.ErrorIs(t, err, fleet.ErrUnavailable)
	require.EqualError(t, err, "fleet: redis "+t.Name()+": not asked after too many failures")
	require.Empty(t, f.commands())
	require.True(t, l.Breaker().Tripped())
	var store *fleet.StoreError
	require.ErrorAs(t, err, &store)
	require.Greater(t, store.RetryAfter(), 20*time.Second)
}

func TestConnectTakesNoLongerThanADecision(t *testing.T) {
	f := newFakeServer(t, map[string]string{"info": ""})
	began := testenv.Running()
	b := newBucket(connectTo(t, f.client(), fleet.LinkConfig{Timeout: 20 * ms}), errorOnOutage)
	_, err := b.Take(t.Context(), "user", 1)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, testenv.Running()-began, 20*ms+timeoutSlack)
}

// A foreign value is not changed, and is not a failure of Redis.
func TestForeignValuesReturnErrForeign(t *testing.T) {
	l, direct := connect(t), newClient(t, sharedServer())
	open := fleet.Config{OnOutage: fleet.FailOpen}
	window := time.Minute
	for name, b := range map[string]interface {
		scriptLimiter
		Take(ctx context.Context, key string, n int) (fleet.Result, error)
		Refund(ctx context.Context, taken time.Time, key string, n int) error
	}{
		"bucket":   newLimiter(l, "foreign-bucket", fleet.TokenBucket{Rate: limiter.PerSecond(1)}, open),
		"fixed":    newLimiter(l, "foreign-fixed", fleet.FixedWindow{Limit: 1, Window: window}, open),
		"sliding":  newLimiter(l, "foreign-sliding", fleet.SlidingWindow{Limit: 1, Window: window}, open),
		"log":      newLimiter(l, "foreign-log", fleet.SlidingLog{Limit: 1, Window: window}, open),
		"throttle": newLimiter(l, "foreign-throttle", rediscell.Limit(0, 1, window), open),
		"all":      newLimiters(l, "foreign-all", open, fleet.FixedWindow{Limit: 1, Window: window}, fleet.TokenBucket{Rate: limiter.PerSecond(1)}),
	} {
		for what, write := range map[string][]any{
			"a text":   {"set", "hello"},
			"a number": {"set", "-42.5"},
			"a list":   {"rpush", "x"},
			"a hash":   {"hset", "x", "y"},
			"a zset":   {"zadd", "17", "x"},
			"ones":     {"zadd", "-1", "n1:1"},
			"nothing":  {"set", ""},
			"zeros":    {"set", "0 0 0 0 0"},
		} {
			t.Run(name+" on "+what, func(t *testing.T) {
				key := b.StateKeys("user")[0]
				require.NoError(t, direct.Del(t.Context(), key).Err())
				require.NoError(t, direct.Do(t.Context(), append([]any{write[0], key}, write[1:]...)...).Err())
				before := direct.Dump(t.Context(), key).Val()
				_, err := b.Take(t.Context(), "user", 1)
				require.ErrorIs(t, err, fleet.ErrForeign)
				require.EqualError(t, err, "fleet: redis TestForeignValuesReturnErrForeign: the key holds a foreign value: choose another prefix or name, or delete the key")
				require.NotErrorIs(t, err, fleet.ErrUnavailable)
				_, err = b.Take(t.Context(), "user", 0)
				require.ErrorIs(t, err, fleet.ErrForeign)
				require.ErrorIs(t, b.Refund(t.Context(), time.Now(), "user", 1), fleet.ErrForeign)
				require.Equal(t, before, direct.Dump(t.Context(), key).Val())
			})
		}
	}
	require.Zero(t, l.Breaker().Counts().Failures)
}

func TestStoreErrorsMatchTheirSentinels(t *testing.T) {
	for fault, want := range map[string]error{
		fleet.FaultTimeout: fleet.ErrUnavailable, fleet.FaultConnection: fleet.ErrUnavailable, fleet.FaultDenied: fleet.ErrUnavailable,
		fleet.FaultForeign: fleet.ErrForeign, fleet.FaultTooOld: fleet.ErrServer,
	} {
		e := &fleet.StoreError{Fault: fault}
		for _, target := range []error{fleet.ErrUnavailable, fleet.ErrForeign, fleet.ErrServer} {
			require.Equal(t, errors.Is(want, target), errors.Is(e, target), "%s is %v", fault, target)
		}
		require.False(t, strings.HasSuffix(e.Error(), ": "), fault)
	}
}
