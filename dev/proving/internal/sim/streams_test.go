package sim_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

// spy is a guard that lets all calls through and notes what it sees of them.
type spy struct {
	hosts     []int
	errs      []error
	deadlines int
}

func (g *spy) Call(ctx context.Context, f func(context.Context) error) error {
	g.hosts = append(g.hosts, sim.Host(ctx))
	if _, ok := ctx.Deadline(); ok {
		g.deadlines++
	}
	err := f(ctx)
	g.errs = append(g.errs, err)
	return err
}

func (*spy) Refusal(error) (time.Duration, bool) { return 0, false }
func (*spy) Openings() int                       { return 0 }

func (g *spy) cancelled() (n int) {
	for _, err := range g.errs {
		if errors.Is(err, context.Canceled) {
			n++
		}
	}
	return n
}

// watch traces a world of one client, with and without a goroutine for each call.
func watch(t *testing.T, w sim.World) ([]sim.Call, *spy) {
	g := new(spy)
	calls, attempts := sim.Trace(w, sim.Maker{Name: "spy", New: func(sim.Setting) sim.Guard { return g }}, 1)
	again, attemptsAgain := sim.Trace(w, sim.None(), 1)
	require.Equal(t, calls, again)
	require.Equal(t, attempts, attemptsAgain)
	require.Len(t, attempts, len(g.errs))
	if w.Clients[0].Retries == 0 {
		require.Equal(t, calls, attempts)
	} else {
		require.Greater(t, len(attempts), len(calls))
	}
	return calls, g
}

// share returns the share of calls that begin in a span and end so.
func share(calls []sim.Call, from, to time.Duration, end sim.End) float64 {
	n, all := 0, 0
	for _, c := range calls {
		if c.Began >= from && c.Began < to {
			all++
			if c.End == end {
				n++
			}
		}
	}
	return float64(n) / float64(all)
}

func TestAStreamIsGoodIfItIsServedUntilItsClientLeaves(t *testing.T) {
	w := sim.World{
		Service: sim.Service{Servers: 62, Time: sim.Constant(10 * ms), Queue: 10_000},
		Clients: []sim.Client{{Rate: 20, Timeout: sec, StreamShare: 0.5, Stream: sim.Constant(5 * sec), Retries: 2, Backoff: ms}},
		Faults:  []sim.Fault{{Span: sim.Span{From: 30 * sec, To: 40 * sec}, Capacity: sim.NoCapacity}},
		For:     60 * sec,
	}
	calls, g := watch(t, w)
	streams := 0
	for _, c := range calls {
		if long := c.Ended - c.Began; long == 5*sec {
			streams++
			hung := c.Ended > 30*sec && c.Ended <= 40*sec
			require.Equal(t, hung, c.End == sim.Failed, "began at %v", c.Began)
		}
	}
	require.InDelta(t, len(calls)/2, streams, 60)
	require.Equal(t, streams, g.cancelled(), "a client that has left does not retry")
}

// A stream takes a server until its client leaves. Two servers take 5 of 13 streams if four would
// be there on average (Erlang).
func TestAStreamTakesAServer(t *testing.T) {
	w := sim.World{
		Service: sim.Service{Servers: 2, Time: sim.Constant(ms)},
		Clients: []sim.Client{{Rate: 1, StreamShare: 1, Stream: sim.Exponential(4 * sec)}},
		For:     5000 * sec,
	}
	calls, _ := watch(t, w)
	require.InDelta(t, 5.0/13, share(calls, 0, w.For, sim.Good), 0.02)
	w.Service.Servers = 30
	calls, _ = watch(t, w)
	require.InDelta(t, 1, share(calls, 0, w.For, sim.Good), 0)
}

func TestCallersMayTellNoDeadline(t *testing.T) {
	w := sim.World{
		Service: sim.Service{Servers: 100, Time: sim.Constant(2 * sec)},
		Clients: []sim.Client{{Rate: 10}},
		For:     20 * sec,
	}
	calls, g := watch(t, w)
	require.InDelta(t, 1, share(calls, 0, w.For, sim.Good), 0)
	require.Zero(t, g.deadlines)

	w.Clients[0].Timeout, w.Clients[0].Cancels = sec, true
	calls, g = watch(t, w)
	require.InDelta(t, 0, share(calls, 0, w.For, sim.Good), 0)
	require.Zero(t, g.deadlines)
	require.Equal(t, len(calls), g.cancelled())

	w.Clients[0].Cancels = false
	calls, g = watch(t, w)
	require.Equal(t, len(calls), g.deadlines)
	require.Zero(t, g.cancelled())
}

func TestFaultsThatLoseGrowAndRepeat(t *testing.T) {
	w := sim.World{
		Service: sim.Service{Servers: 1000, Time: sim.Constant(10 * ms)},
		Clients: []sim.Client{{Rate: 200, Timeout: sec}},
		Faults: []sim.Fault{
			{Span: sim.Span{From: 20 * sec, To: 40 * sec}, Lost: 0.3},
			{Span: sim.Span{From: 60 * sec, To: 100 * sec}, ErrorRate: 0.8, Grows: true},
			{Span: sim.Span{From: 120 * sec, To: 160 * sec}, Down: true, Period: 4 * sec, Duty: 0.25},
			{Span: sim.Span{From: 180 * sec, To: 220 * sec}, Slower: 51, Grows: true},
		},
		For: 240 * sec,
	}
	calls, _ := watch(t, w)
	for span, want := range map[[2]time.Duration]float64{
		{0, 20}: 0, {20, 40}: 0.3, {40, 60}: 0, {60, 70}: 0.1, {90, 100}: 0.7, {100, 120}: 0, {120, 160}: 0.25, {161, 240}: 0,
	} {
		require.InDelta(t, want, share(calls, span[0]*sec, span[1]*sec, sim.Failed), 0.03, "%v", span)
	}
	for _, c := range calls {
		if c.Began >= 180*sec && c.Began < 220*sec {
			want := 10 + 10*50*(c.Began-180*sec).Seconds()/40
			require.InDelta(t, want, (c.Ended-c.Began).Seconds()*1000, 0.01)
		}
	}
}

func TestHostsMayBeChosenInTurn(t *testing.T) {
	w := sim.World{
		Service: sim.Service{Servers: 100, Time: sim.Constant(ms), Hosts: 4, InTurn: true},
		Clients: []sim.Client{{Rate: 50, Timeout: sec}},
		Faults:  []sim.Fault{{Span: sim.Span{To: 20 * sec}, Down: true, Host: 2}},
		For:     20 * sec,
	}
	calls, g := watch(t, w)
	for i, c := range calls {
		require.Equal(t, i%4, c.Host)
		require.Equal(t, i%4, g.hosts[i])
		require.Equal(t, c.Host == 1, c.End == sim.Failed)
	}
}

func TestWorldsInWhichACallHasNoEndAreInvalid(t *testing.T) {
	w := sim.World{
		Service: sim.Service{Servers: 1, Time: sim.Constant(ms)},
		Clients: []sim.Client{{Rate: 1, Cancels: true, StreamShare: 2}},
		Faults:  []sim.Fault{{Span: sim.Span{To: sec}, Lost: 0.5, Duty: -1}},
		For:     sec,
	}
	err := w.Validate()
	for _, text := range []string{
		"Faults[0].Lost needs a Timeout of Clients[0]", "Clients[0].Cancels needs a Timeout", "Clients[0].StreamShare is 2",
		"Clients[0].Stream is missing", "Faults[0].Duty is -1",
	} {
		require.ErrorContains(t, err, text)
	}
}

func TestDistributionsHaveTheirMeans(t *testing.T) {
	for _, test := range []struct {
		times sim.Distribution
		mean  time.Duration
	}{
		{sim.Pareto(10*ms, 3), 15 * ms},
		{sim.Mixture(
			sim.Part{Share: 0.75, Distribution: sim.Constant(4 * ms)},
			sim.Part{Share: 0.25, Distribution: sim.Exponential(100 * ms)},
		), 28 * ms},
	} {
		const n = 100_000
		sum := 0.0
		for i := range n {
			sum += test.times.At((float64(i)+0.5)/n).Seconds() / n
		}
		require.InEpsilon(t, test.mean.Seconds(), sum, 0.01, test.times.Text)
	}
	require.Equal(t, 10*sec, sim.Pareto(10*ms, 1.1).At(1-1e-12), "the longest time")
}
