package fleet_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/rediscell"
	"github.com/weir-go/weir/limiter"
)

// scriptLimiter has the methods of a Limiter that these tests use.
type scriptLimiter interface {
	timedLimiter
	StateKeys(key string) []string
}

// scriptStep takes n tokens at a time in µs after the beginning. If n is 0 it
// only reads the state, and if n is negative it gives -n tokens back.
type scriptStep struct {
	at   int64
	n    int
	want limiter.Result
	held string // by the key afterwards, "" for nothing
}

func allowedResult(limit, remaining int, reset time.Duration) limiter.Result {
	return limiter.Result{OK: true, Limit: limit, Remaining: remaining, ResetAfter: reset}
}

func refusedResult(limit, remaining int, retry, reset time.Duration) limiter.Result {
	return limiter.Result{Limit: limit, Remaining: remaining, RetryAfter: retry, ResetAfter: reset}
}

const (
	us = time.Microsecond
	ms = time.Millisecond
)

// scriptCases are test cases by the name of the limiter. The beginning is 1767225600 s since 1970.
var scriptCases = map[string]struct {
	limit fleet.Limit
	steps []scriptStep
}{
	"script-bucket": {
		fleet.TokenBucket{Rate: limiter.PerSecond(3), Burst: 2},
		[]scriptStep{
			{0, 0, allowedResult(2, 2, 0), ""},
			{0, 1, allowedResult(2, 1, 333334*us), "1767225600333333 1 333333 1 3 2"},
			{0, 1, allowedResult(2, 0, 666667*us), "1767225600666666 2 333333 1 3 2"},
			{0, 1, refusedResult(2, 0, 333334*us, 666667*us), "1767225600666666 2 333333 1 3 2"},
			{333333, 1, refusedResult(2, 0, 1*us, 333334*us), "1767225600666666 2 333333 1 3 2"},
			{333334, 1, allowedResult(2, 0, 666666*us), "1767225601000000 0 333333 1 3 2"},
			{333334, 3, refusedResult(2, 0, limiter.Never, 666666*us), "1767225601000000 0 333333 1 3 2"},
			{333334, -1, allowedResult(2, 1, 333333*us), "1767225600666666 2 333333 1 3 2"},
			{666667, -1, allowedResult(2, 2, 0), ""},
		},
	},
	"script-fixed": {
		fleet.FixedWindow{Limit: 3, Window: time.Second},
		[]scriptStep{
			{400_000, 0, allowedResult(3, 3, 0), ""},
			{400_000, 2, allowedResult(3, 1, 600*ms), "f1767225600000000 2"},
			{400_000, 2, refusedResult(3, 1, 600*ms, 600*ms), "f1767225600000000 2"},
			{400_000, 4, refusedResult(3, 1, limiter.Never, 600*ms), "f1767225600000000 2"},
			{999_999, -1, allowedResult(3, 2, 1*us), "f1767225600000000 1"},
			{1_000_000, 3, allowedResult(3, 0, 1000*ms), "f1767225601000000 3"},
			{900_000, 1, refusedResult(3, 0, 1100*ms, 1100*ms), "f1767225601000000 3"},
			{1_900_000, -9, allowedResult(3, 3, 0), ""},
		},
	},
	"script-sliding": {
		fleet.SlidingWindow{Limit: 3, Window: time.Second, Buckets: 4},
		[]scriptStep{
			{0, 0, allowedResult(3, 3, 0), ""},
			{249_999, 1, allowedResult(3, 2, 1000*ms+us), "w250000 7068902400:1"},
			{250_000, 1, allowedResult(3, 1, 1250*ms), "w250000 7068902400:1 7068902401:1"},
			{260_000, 1, allowedResult(3, 0, 1240*ms), "w250000 7068902400:1 7068902401:2"},
			{260_000, 1, refusedResult(3, 0, 990*ms, 1240*ms), "w250000 7068902400:1 7068902401:2"},
			{260_000, 2, refusedResult(3, 0, 1240*ms, 1240*ms), "w250000 7068902400:1 7068902401:2"},
			{1_249_999, 1, refusedResult(3, 0, 1*us, 250*ms+us), "w250000 7068902400:1 7068902401:2"},
			{1_250_000, 1, allowedResult(3, 0, 1250*ms), "w250000 7068902401:2 7068902405:1"},
			{1_250_000, 4, refusedResult(3, 0, limiter.Never, 1250*ms), "w250000 7068902401:2 7068902405:1"},
			{1_250_000, -1, allowedResult(3, 1, 1250*ms), "w250000 7068902401:1 7068902405:1"},
			{900_000, 1, allowedResult(3, 0, 1600*ms), "w250000 7068902401:1 7068902405:2"},
			{1_250_000, -3, allowedResult(3, 3, 0), ""},
		},
	},
	"script-throttle": {
		rediscell.Limit(1, 30, time.Minute),
		[]scriptStep{
			{0, 0, allowedResult(2, 2, 0), ""},
			{0, 1, allowedResult(2, 1, 2*time.Second), "1767225602000000000"},
			{0, 1, allowedResult(2, 0, 4*time.Second), "1767225604000000000"},
			{0, 1, refusedResult(2, 0, 2*time.Second, 4*time.Second), "1767225604000000000"},
			{1_999_999, 1, refusedResult(2, 0, 1*us, 2*time.Second+us), "1767225604000000000"},
			{2_000_000, 1, allowedResult(2, 0, 4*time.Second), "1767225606000000000"},
			{2_000_000, 3, refusedResult(2, 0, limiter.Never, 4*time.Second), "1767225606000000000"},
			{2_000_000, math.MaxInt, refusedResult(2, 0, limiter.Never, 4*time.Second), "1767225606000000000"},
			{-5_000_000, -1, refusedResult(2, 0, 5*time.Second, 9*time.Second), "1767225604000000000"},
			{2_000_000, 0, allowedResult(2, 1, 2*time.Second), "1767225604000000000"},
			{2_000_000, -9, allowedResult(2, 2, 0), ""},
		},
	},
}

// Each script replies and stores the expected values.
func TestScripts(t *testing.T) {
	l, direct := connect(t), newClient(t, sharedServer())
	for name, c := range scriptCases {
		t.Run(name, func(t *testing.T) {
			b := newLimiter(l, name, c.limit, errorOnOutage)
			for _, step := range c.steps {
				r, err := takeOrRefundAt(t.Context(), b, testStart.Add(time.Duration(step.at)*us), step.n)
				require.NoError(t, err)
				require.Equal(t, step.want, r, "%d at %d µs", step.n, step.at)
				held, _ := direct.Get(t.Context(), b.StateKeys("user")[0]).Result()
				require.Equal(t, step.held, held, "after %d at %d µs", step.n, step.at)
			}
		})
	}
}

// takeOrRefundAt takes tokens of the key user or gives them back, and returns the state.
func takeOrRefundAt(ctx context.Context, l timedLimiter, at time.Time, n int) (limiter.Result, error) {
	if n < 0 {
		if err := l.GiveBackAt(ctx, at, "user", -n); err != nil {
			return limiter.Result{}, err
		}
		n = 0
	}
	r, err := l.TakeAt(ctx, at, "user", n)
	return r.Result, err
}

// A sliding log has one key with one entry per grant, even if several come at the same time.
func TestSlidingLogUsesOneKey(t *testing.T) {
	l, direct := connect(t), newClient(t, sharedServer())
	log := newLimiter(l, "script-log", fleet.SlidingLog{Limit: 5, Window: time.Second}, fleet.Config{OnOutage: fleet.FailError})
	for _, step := range []struct {
		at   int64
		n    int
		want limiter.Result
		held []string
	}{
		{0, 0, allowedResult(5, 5, 0), nil},
		{0, 1, allowedResult(5, 4, 1000*ms), []string{"n1:0:0", "0000000000000001:1"}},
		{0, 1, allowedResult(5, 3, 1000*ms), []string{"n2:0:0", "0000000000000001:1", "0000000000000002:1"}},
		{100_000, 3, allowedResult(5, 0, 1000*ms), []string{"n5:0:0", "0000000000000001:1", "0000000000000002:1", "0000000000000005:3"}},
		{900_000, 2, refusedResult(5, 0, 100*ms, 200*ms), []string{"n5:0:0", "0000000000000001:1", "0000000000000002:1", "0000000000000005:3"}},
		{900_000, 3, refusedResult(5, 0, 200*ms, 200*ms), []string{"n5:0:0", "0000000000000001:1", "0000000000000002:1", "0000000000000005:3"}},
		{900_000, 6, refusedResult(5, 0, limiter.Never, 200*ms), []string{"n5:0:0", "0000000000000001:1", "0000000000000002:1", "0000000000000005:3"}},
		{999_999, 1, refusedResult(5, 0, 1*us, 100*ms+us), []string{"n5:0:0", "0000000000000001:1", "0000000000000002:1", "0000000000000005:3"}},
		{1_000_000, 1, allowedResult(5, 1, 1000*ms), []string{"n6:0:1767225600000000", "0000000000000005:3", "0000000000000006:1"}},
		{1_000_000, -2, allowedResult(5, 3, 1000*ms), []string{"n6:4:1767225600000000", "0000000000000005:3", "0000000000000006:1"}},
		{1_000_000, -9, allowedResult(5, 5, 0), []string{"n6:6:1767225600000000"}},
	} {
		r, err := takeOrRefundAt(t.Context(), log, testStart.Add(time.Duration(step.at)*us), step.n)
		require.NoError(t, err)
		require.Equal(t, step.want, r, "%d at %d µs", step.n, step.at)
		held, err := direct.ZRange(t.Context(), log.StateKeys("user")[0], 0, -1).Result()
		require.NoError(t, err)
		require.Equal(t, append([]string{}, step.held...), held, "after %d at %d µs", step.n, step.at)
	}
}
