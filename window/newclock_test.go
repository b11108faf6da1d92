package window_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/window"
)

// countingWindow is a window of any type: add counts one event, and seen returns the events of the
// last minute.
type countingWindow struct {
	add, addAt   func()
	seen, seenAt func() int64
	total        func() int64
}

// windowsOfAllKinds returns windows over a minute.
func windowsOfAllKinds() map[string]countingWindow {
	all := map[string]countingWindow{}
	for _, edge := range []window.Edge{window.Recent, window.Strict, window.Interpolated} {
		c := window.NewCounter(window.Config{Span: time.Minute, Edge: edge})
		all["counter "+string(edge)] = countingWindow{
			add: func() { c.Add(1) }, addAt: func() { c.AddAt(time.Now(), 1) },
			seen: c.Sum, seenAt: func() int64 { return c.SumAt(time.Now()) }, total: c.Total,
		}
		v, fed := window.NewView(window.Config{Span: time.Minute, Edge: edge}), int64(0)
		sample := func(at func(window.Totals)) func() {
			return func() {
				at(window.Totals{Failures: fed})
				fed++
				at(window.Totals{Failures: fed})
			}
		}
		all["view "+string(edge)] = countingWindow{
			add: sample(v.Sample), addAt: sample(func(t window.Totals) { v.SampleAt(time.Now(), t) }),
			seen: func() int64 { return v.Counts().Failures }, seenAt: func() int64 { return v.CountsAt(time.Now()).Failures },
			total: func() int64 { return fed },
		}
	}
	c := window.NewCalls(window.CallsConfig{Name: "c", Span: time.Minute, Latency: true, Slow: time.Second})
	counts := func(n window.Counts, l window.Latency) int64 {
		if n.Failures != l.Count() || n.Failures != n.Slow {
			return -1
		}
		return n.Failures
	}
	all["calls"] = countingWindow{
		add: func() { c.Record(window.Failure, 2*time.Second) }, addAt: func() { c.RecordAt(time.Now(), window.Failure, 2*time.Second) },
		seen:   func() int64 { return counts(c.Counts(), c.Latency()) },
		seenAt: func() int64 { return counts(c.CountsAt(time.Now()), c.LatencyAt(time.Now())) },
		total:  func() int64 { return c.Totals().Failures },
	}
	refusals := window.NewCalls(window.CallsConfig{Span: time.Minute})
	all["refusals"] = countingWindow{
		add: refusals.Refuse, addAt: refusals.Refuse,
		seen:   func() int64 { return refusals.Counts().Refused },
		seenAt: func() int64 { return refusals.CountsAt(time.Now()).Refused },
		total:  func() int64 { return refusals.Totals().Refused },
	}
	last := window.NewCalls(window.CallsConfig{Last: 100})
	all["last"] = countingWindow{
		add: func() { last.Record(window.Failure, 0) }, addAt: func() { last.RecordAt(time.Now(), window.Failure, 0) },
		seen:   func() int64 { return last.Counts().Failures },
		seenAt: func() int64 { return last.CountsAt(time.Now()).Failures },
		total:  func() int64 { return last.Totals().Failures },
	}
	return all
}

// Windows are package variables that are used with the real clock, then in two bubbles, each with a
// clock that begins in the year 2000, and then with the real clock again. In each clock they count
// as a new window does, and totals never fall.
func TestAWindowStartsAgainWithEachClock(t *testing.T) {
	for _, readFirst := range []bool{false, true} {
		for _, given := range []bool{false, true} {
			for kind, w := range windowsOfAllKinds() {
				add, seen, total := w.add, w.seen, int64(0)
				if given {
					add, seen = w.addAt, w.seenAt
				}
				use := func(clock string, n int64) {
					if readFirst {
						require.Zero(t, seen(), "%s, %s", kind, clock)
					}
					for i := range n {
						add()
						require.Equal(t, i+1, seen(), "%s, %s", kind, clock)
					}
					total += n
					require.Equal(t, total, w.total(), "%s, %s", kind, clock)
				}
				inBubble := func(t *testing.T) {
					use("in a bubble", 3)
					time.Sleep(2 * time.Hour)
					if kind == "last" {
						add()
						total++
						return
					}
					require.Zero(t, seen(), "%s: two hours later", kind)
					use("two hours later", 2)
				}
				use("the real clock", 4)
				synctest.Test(t, inBubble)
				synctest.Test(t, inBubble)
				if kind != "last" {
					use("the real clock again", 5)
				}
			}
		}
	}
}

// A window that was given times a year ahead of the clock starts again when it is given the time of
// the clock. Times that are not those of the clock are stale, however early they are.
func TestAWindowStartsAgainAfterAYearBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24 * time.Hour)
		now, ahead := time.Now(), time.Now().Add(year)
		counter := window.NewCounterAt(window.Config{Span: time.Minute}, now)
		calls := window.NewCallsAt(window.CallsConfig{Span: time.Minute}, now)
		view := window.NewViewAt(window.Config{Span: time.Minute}, now)
		fed := window.Totals{}
		add := func(at time.Time) {
			counter.AddAt(at, 1)
			calls.RecordAt(at, window.Success, 0)
			view.SampleAt(at, fed)
			fed.Successes++
			view.SampleAt(at, fed)
		}
		requireSeen := func(at time.Time, want int64) {
			t.Helper()
			got := [3]int64{counter.SumAt(at), calls.CountsAt(at).Successes, view.CountsAt(at).Successes}
			require.Equal(t, [3]int64{want, want, want}, got)
		}
		add(ahead)
		requireSeen(ahead, 1)
		for _, stale := range []time.Duration{1, time.Second, time.Hour, year / 2, 2 * year} {
			add(ahead.Add(-stale))
		}
		requireSeen(ahead, 6)
		add(now)
		requireSeen(now, 1)
		time.Sleep(2 * time.Minute)
		requireSeen(time.Now(), 0)
	})
}

const year = 365 * 24 * time.Hour

// A window shows how much of its span it covers since its clock began.
func TestCoverageBeginsWithTheClock(t *testing.T) {
	calls := window.NewCalls(window.CallsConfig{Name: "c", Span: time.Minute})
	calls.Record(window.Failure, 0)
	synctest.Test(t, func(t *testing.T) {
		calls.Record(window.Failure, 0)
		require.Equal(t, int64(1), calls.Counts().ConsecutiveFailures)
		time.Sleep(30 * time.Second)
		seen := map[string]float64{}
		for s, v := range calls.Observe {
			seen[s.Instrument.Name] = v
		}
		require.InDelta(t, 0.5, seen["weir.window.coverage"], 1e-9)
	})
}
