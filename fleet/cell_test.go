package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/limiter"
)

var seedLimit = rediscell.Limit(15, 30, time.Minute)

// numbersOf returns a reply as five integers.
func numbersOf(r rediscell.Reply) [5]int64 {
	limited := int64(0)
	if r.Limited {
		limited = 1
	}
	return [5]int64{limited, r.Limit, r.Remaining, r.RetryAfter, r.ResetAfter}
}

// The steps are those of the table in the documentation of redis-cell. A max_burst of 15 allows 16
// requests at once, although some texts say 15.
func TestCellBySixtyThirties(t *testing.T) {
	throttle := newLimiter(connect(t), "table", seedLimit, errorOnOutage)
	at := func(d time.Duration, n int) [5]int64 {
		r, err := throttle.TakeAt(t.Context(), testStart.Add(d), "user", n)
		require.NoError(t, err)
		return numbersOf(rediscell.ReplyOf(r.Result))
	}
	for i := range int64(16) {
		require.Equal(t, [5]int64{0, 16, 15 - i, -1, 2 * (i + 1)}, at(0, 1))
	}
	for _, s := range []struct {
		at   time.Duration
		n    int
		want [5]int64
	}{
		{0, 1, [5]int64{1, 16, 0, 2, 32}},
		{500 * ms, 1, [5]int64{1, 16, 0, 2, 32}},
		{1999 * ms, 1, [5]int64{1, 16, 0, 1, 31}},
		{2*time.Second - 1, 1, [5]int64{1, 16, 0, 1, 30}}, // redis-cell: retry in 0
		{2 * time.Second, 1, [5]int64{0, 16, 0, -1, 32}},
		{2 * time.Second, 17, [5]int64{1, 16, 0, -1, 32}},
		{2 * time.Second, 16, [5]int64{1, 16, 0, 32, 32}},
		{10 * time.Second, 3, [5]int64{0, 16, 1, -1, 30}},
		{60 * time.Second, 0, [5]int64{0, 16, 16, -1, 0}},
	} {
		require.Equal(t, s.want, at(s.at, s.n), "%d at %s", s.n, s.at)
	}
}

// knowsCell is the reply of a server that has redis-cell to COMMAND INFO CL.THROTTLE.
const knowsCell = "*1\r\n*6\r\n$11\r\ncl.throttle\r\n:-1\r\n*0\r\n:1\r\n:1\r\n:1\r\n"

func TestCellUsesTheModuleIfThereIsOne(t *testing.T) {
	f := newFakeServer(t, map[string]string{
		"command":     knowsCell,
		"cl.throttle": integerReply(0, 16, 15, -1, 2),
		"evalsha":     integerReply(0, 0, 0, 4, 0),
	})
	throttle := newLimiter(connectTo(t, f.client(), fleet.LinkConfig{Timeout: longTimeout}), "cell", seedLimit, fleet.Config{OnOutage: fleet.FailError, MaxDenied: limiter.Off})
	ask := func(n int) rediscell.Reply {
		r, err := rediscell.Throttle(t.Context(), throttle, "user:42", n)
		require.NoError(t, err)
		return r
	}
	require.Equal(t, rediscell.Reply{Limit: 16, Remaining: 15, RetryAfter: -1, ResetAfter: 2}, ask(1))
	require.Equal(t, []string{"cl.throttle weir:cell:{user:42} 15 30 60 1"}, f.commands())

	f.setReply("cl.throttle", integerReply(1, 16, 0, 2, 32))
	require.Equal(t, [5]int64{1, 16, 0, 2, 32}, numbersOf(ask(3)))
	f.setReply("cl.throttle", integerReply(1, 16, 0, 0, 32))
	require.Equal(t, [5]int64{1, 16, 0, 1, 32}, numbersOf(ask(1)), "a refusal never says 0")
	f.setReply("cl.throttle", integerReply(1, 16, 16, -1, 0))
	f.commands()
	require.Equal(t, [5]int64{1, 16, 16, -1, 0}, numbersOf(ask(1_000_000)))
	require.Equal(t, []string{"cl.throttle weir:cell:{user:42} 15 30 60 17"}, f.commands())

	require.Equal(t, [5]int64{0, 16, 14, -1, 4}, numbersOf(ask(0)), "the module would store a request for 0")
	require.Contains(t, f.commands()[0], "evalsha")

	f.setReply("cl.throttle", "-ERR unknown command 'CL.THROTTLE', with args beginning with:\r\n")
	require.Equal(t, int64(14), ask(1).Remaining, "without the module, the script decides")
	require.Len(t, f.commands(), 2)
	ask(1)
	require.Len(t, f.commands(), 1, "the module is not asked again")
}

func TestCellWithoutTheModule(t *testing.T) {
	throttle := newLimiter(connect(t), "plain", rediscell.Limit(2, 1, time.Hour), errorOnOutage)
	for _, want := range [][5]int64{{0, 3, 2, -1, 3600}, {0, 3, 1, -1, 7200}, {0, 3, 0, -1, 10800}, {1, 3, 0, 3600, 10800}} {
		r, err := rediscell.Throttle(t.Context(), throttle, "user", 1)
		require.NoError(t, err)
		require.Equal(t, want, numbersOf(r))
	}
	require.NoError(t, throttle.Refund(t.Context(), time.Now(), "user", 1))
	r, err := throttle.Take(t.Context(), "user", 0)
	require.NoError(t, err)
	require.Equal(t, 1, r.Remaining)
	require.NoError(t, throttle.Reset(t.Context(), "user"))
	reply, err := rediscell.Throttle(t.Context(), throttle, "user", -1)
	require.NoError(t, err)
	require.Equal(t, [5]int64{1, 3, 3, -1, 0}, numbersOf(reply))
}

func TestCellWithoutRedis(t *testing.T) {
	_, l := unavailableLink(t)
	throttle := newLimiter(l, "away", rediscell.Limit(5, 3600, time.Hour), fleet.Config{OnOutage: fleet.FailLocal, Share: 0.5})
	for _, want := range []bool{false, false, false, true} {
		r, err := rediscell.Throttle(t.Context(), throttle, "user", 1)
		require.NoError(t, err)
		require.Equal(t, want, r.Limited)
		require.Equal(t, want, r.RetryAfter > 0)
	}
}

// Two limiters with the same name and different rates use the same key, because neither redis-cell
// nor this package stores the limit in Redis.
func TestCellsOfOneNameShareTheirKeys(t *testing.T) {
	l := connect(t)
	slow := newLimiter(l, "tiers", rediscell.Limit(0, 1, 10*time.Second), errorOnOutage)
	quick := newLimiter(l, "tiers", rediscell.Limit(9, 10, 10*time.Second), errorOnOutage)
	take := func(b *fleet.Limiter) limiter.Result {
		r, err := b.TakeAt(t.Context(), testStart, "user", 1)
		require.NoError(t, err)
		return r.Result
	}
	require.True(t, take(slow).OK)
	require.Equal(t, refusedResult(10, 0, time.Second, 10*time.Second), take(quick))
}

// A proxy or a module may answer anything. An invalid answer is an error and does not panic.
func TestAnAnswerOfTheWrongLengthIsAnError(t *testing.T) {
	for _, reply := range [][]int64{{}, {1}, {1, 2, 3}, {1, 2, 3, 4}, {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}} {
		f := newFakeServer(t, map[string]string{
			"command":     knowsCell,
			"cl.throttle": integerReply(reply...), "evalsha": integerReply(reply...), "eval": integerReply(reply...),
		})
		l := connectTo(t, f.client(), fleet.LinkConfig{Timeout: longTimeout})
		for name, limit := range tenPerSecond {
			b := newLimiter(l, name, limit, errorOnOutage)
			_, err := b.Take(t.Context(), "user", 1)
			require.ErrorIs(t, err, fleet.ErrUnavailable, "%s: %v", name, reply)
			require.ErrorIs(t, b.Refund(t.Context(), time.Now(), "user", 1), fleet.ErrUnavailable, "%s: %v", name, reply)
		}
	}
}
