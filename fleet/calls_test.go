package fleet_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
	"github.com/weir-go/weir/window"
)

// recorder is a Calls and a window that it follows.
type recorder struct {
	*fleet.Calls
	own *window.Calls
}

func newCalls(l *fleet.Link, name string, c fleet.CallsConfig) recorder {
	r := recorder{fleet.NewCalls(l, name, c), window.NewCalls(window.CallsConfig{})}
	r.Follow(r.own)
	return r
}

func (r recorder) Record(o window.Outcome, took time.Duration) { r.own.Record(o, took) }

func (r recorder) Refuse() { r.own.Refuse() }

// member is a Calls whose Run lasts until the test ends or stop is called.
type member struct {
	recorder
	stop func()
}

func join(t *testing.T, l *fleet.Link, c fleet.CallsConfig) member {
	t.Helper()
	return runMember(t, newCalls(l, nameOfTest(t), c))
}

// nameOfTest returns the test's name without braces. Its Redis keys are deleted when the test ends.
func nameOfTest(t *testing.T) string {
	t.Helper()
	name := strings.NewReplacer("{", "", "}", "").Replace(t.Name())
	t.Cleanup(func() {
		sharedServer().Do("EVAL", "for _, k in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', k) end return 1", 0, "*"+name+"*")
	})
	return name
}

func runMember(t *testing.T, c recorder) member {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	stop := func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return member{c, stop}
}

// fastFlushes flushes often, to keep tests short.
var fastFlushes = fleet.CallsConfig{Span: 10 * time.Second, Buckets: 10, Interval: 20 * time.Millisecond}

func (m member) record(o window.Outcome, n int) {
	for range n {
		m.Record(o, 0)
	}
}

// requireSoon waits for a condition that normally holds after two intervals.
func requireSoon(t *testing.T, holds func() bool, what ...any) {
	t.Helper()
	require.Eventually(t, holds, time.Minute, time.Millisecond, what...)
}

func TestCallsOfAllNodesAreCountedByEach(t *testing.T) {
	l := connect(t)
	nodes := []member{join(t, l, fastFlushes), join(t, l, fastFlushes), join(t, l, fastFlushes)}
	for _, n := range nodes {
		// calls that were counted before a node's first answer are not in its Totals
		requireSoon(t, func() bool { return n.Flushes() > 0 })
	}
	for i, n := range nodes {
		n.record(window.Failure, i+1)
		require.GreaterOrEqual(t, n.Counts().Failures, int64(i+1), "this node counts its own calls at once")
		n.record(window.Success, 10)
		n.record(window.Ignored, 2)
		n.Refuse()
	}
	want := window.Counts{Successes: 30, Failures: 6, Ignored: 6, Refused: 3}
	for _, n := range nodes {
		requireSoon(t, func() bool { return n.Counts() == want }, "each once")
		require.Equal(t, window.Totals(want), n.Totals())
		require.Never(t, func() bool { return n.Counts() != want }, 3*fastFlushes.Interval, time.Millisecond)
		require.NoError(t, n.Err())
		requireSoon(t, func() bool { return n.Lag() < time.Second })
	}
	late := join(t, l, fastFlushes)
	requireSoon(t, func() bool { return late.Counts() == want }, "a node that joins learns of them")
	require.Zero(t, late.Totals(), "a new node counts no calls of its time before")
}

func TestSlowCallsAreCounted(t *testing.T) {
	l := connect(t)
	node, b := join(t, l, fastFlushes), join(t, l, fastFlushes)
	a := window.NewCalls(window.CallsConfig{Slow: time.Second})
	node.Follow(a)
	a.Record(window.Success, 2*time.Second)
	a.Record(window.Failure, 2*time.Second)
	a.Record(window.Failure, time.Second)
	requireSoon(t, func() bool { return b.Counts() == window.Counts{Successes: 1, Failures: 2, Slow: 2, SlowFailures: 1} })
}

func TestTheLastCallsAreFlushedWhenRunEnds(t *testing.T) {
	c := fastFlushes
	c.Interval = 10 * time.Second
	l := connect(t)
	a := join(t, l, c)
	requireSoon(t, func() bool { return a.Flushes() > 0 })
	a.record(window.Failure, 5)
	a.stop()
	b := join(t, l, c)
	requireSoon(t, func() bool { return b.Counts().Failures == 5 })
	runMember(t, a.recorder).stop() // it may run again
}

func TestCallsThatWereFollowedCount(t *testing.T) {
	l := connect(t)
	a, b := join(t, l, fastFlushes), join(t, l, fastFlushes)
	guard := breaker.New("payments", breaker.Config{})
	_ = guard.Run(t.Context(), func(context.Context) error { return errors.New("history") })
	a.Follow(guard)
	require.Zero(t, a.Counts())
	_ = guard.Run(t.Context(), func(context.Context) error { return nil })
	require.Equal(t, succeededCounts(1), a.Counts(), "at once")
	_ = guard.Run(t.Context(), func(context.Context) error { return errors.New("no") })
	want := window.Counts{Successes: 1, Failures: 1}
	requireSoon(t, func() bool { return b.Counts() == want })
	require.Equal(t, want, a.Counts())
}

func TestForgetCountsFromNowOn(t *testing.T) {
	c := fastFlushes
	c.Span, c.Interval = 100*time.Millisecond, 10*time.Millisecond
	calls := newCalls(connect(t), nameOfTest(t), c)
	calls.Record(window.Failure, 0)
	require.Equal(t, failedCounts(1), calls.Counts())
	calls.Forget()
	require.Zero(t, calls.Counts())
	require.Never(t, func() bool { return calls.Counts().Failures > 0 }, 50*time.Millisecond, time.Millisecond)
	calls.Record(window.Success, 0)
	require.Equal(t, succeededCounts(1), calls.Counts())
	require.Equal(t, window.Totals{Successes: 1, Failures: 1}, calls.Totals())
}

func TestValidateCallsConfig(t *testing.T) {
	l := connect(t)
	for want, c := range map[string]fleet.CallsConfig{
		"fleet: Buckets is -1, must lie between 1 and 500":                                     {Buckets: -1},
		"fleet: Buckets is 501, must lie between 1 and 500":                                    {Buckets: 501},
		"fleet: Span is -1s, must lie between 10ms and 720h0m0s":                               {Span: -time.Second},
		"fleet: Span is 721h0m0s, must lie between 10ms and 720h0m0s":                          {Span: 721 * time.Hour},
		"fleet: Span is 1s and Buckets is 500, each bucket must last between 10ms and 24h0m0s": {Span: time.Second, Buckets: 500},
		"fleet: Interval is 1ms, must lie between 10ms and Span, 10s":                          {Interval: time.Millisecond},
		"fleet: Interval is 1m0s, must lie between 10ms and Span, 10s":                         {Interval: time.Minute},
	} {
		require.EqualError(t, c.Validate(), want)
		require.PanicsWithError(t, want, func() { fleet.NewCalls(l, "calls", c) })
	}
	require.PanicsWithError(t, "fleet: the link is nil", func() { fleet.NewCalls(nil, "calls", fleet.CallsConfig{}) })
	require.Panics(t, func() { fleet.NewCalls(l, "", fleet.CallsConfig{}) })
	require.Panics(t, func() { fleet.NewCalls(l, "a{b}", fleet.CallsConfig{}) })

	running := join(t, l, fastFlushes)
	requireSoon(t, func() bool { return running.Flushes() > 0 })
	require.EqualError(t, running.Run(t.Context()), `fleet: Run of Calls "`+nameOfTest(t)+`" is already running`)
}

func TestWindowsWithDifferentShapesOrNamesAreSeparate(t *testing.T) {
	l := connect(t)
	a := join(t, l, fastFlushes)
	a.record(window.Failure, 5)
	requireSoon(t, func() bool { return a.Flushes() > 1 })
	wide := fastFlushes
	wide.Span *= 2
	fine := fastFlushes
	fine.Buckets *= 2
	for _, c := range []fleet.CallsConfig{wide, fine} {
		other := join(t, l, c)
		requireSoon(t, func() bool { return other.Flushes() > 1 })
		require.Zero(t, other.Counts())
	}
	other := runMember(t, newCalls(l, nameOfTest(t)+"2", fastFlushes))
	requireSoon(t, func() bool { return other.Flushes() > 1 })
	require.Zero(t, other.Counts())
}

func TestRecordAllocatesNothingAndDoesNotCallRedis(t *testing.T) {
	c := newCalls(connect(t), nameOfTest(t), fleet.CallsConfig{})
	require.Zero(t, testing.AllocsPerRun(100, func() {
		c.Record(window.Failure, 0)
		c.Refuse()
		_ = c.Counts()
		_ = c.Totals()
	}))
	require.Zero(t, c.Flushes())
}

func TestCallsMetrics(t *testing.T) {
	l := connect(t)
	a, b := join(t, l, fastFlushes), join(t, l, fastFlushes)
	a.record(window.Failure, 1)
	b.record(window.Success, 3)
	b.Refuse()
	requireSoon(t, func() bool { return a.Counts().Calls() == 4 && b.Counts().Calls() == 4 })
	set, err := read.New(func(s *stat.Series) string { return s.Instrument.Name + " " + strings.Join(s.Values, " ") }, a)
	require.NoError(t, err)
	seen := maps.Collect(set.Observe)
	metric := func(name string) float64 {
		require.Contains(t, seen, name)
		return seen[name]
	}
	n := nameOfTest(t)
	require.Equal(t, 1.0, metric("weir.window.events "+n+" failure"), "this node's")
	require.Equal(t, 0.0, metric("weir.window.events "+n+" success"))
	require.Equal(t, 4.0, metric("weir.window.size "+n), "the fleet's")
	require.Equal(t, 0.25, metric("weir.window.error_ratio "+n))
	require.Equal(t, 10.0, metric("weir.window.length "+n))
	require.Equal(t, 0.0, metric("weir.window.late_events "+n))
	require.Positive(t, metric("weir.window.flushes "+n+" success"))
	require.Equal(t, 0.0, metric("weir.window.flushes "+n+" failure"))
	require.Positive(t, metric("weir.window.lag "+n))
}
