package sim

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// healthyService is a service that answers any number of calls in 10 ms.
var healthyService = Service{Servers: 1e6, Time: Constant(10 * ms)}

func TestAnOpenLoopIsAPoissonProcess(t *testing.T) {
	w := World{Service: healthyService, Clients: patientClient(100), For: 500 * sec}
	f := Run(w, None(), 1)
	// The calls of a second have mean and variance 100. Over 500 seconds, the mean has a standard
	// deviation of 0.45, and the variance one of 6.3.
	mean, variance := 0.0, 0.0
	for _, s := range f.Series {
		mean += float64(s.Offered) / 500
	}
	for _, s := range f.Series {
		variance += math.Pow(float64(s.Offered)-mean, 2) / 499
	}
	require.InDelta(t, 100, mean, 4*0.45)
	require.InDelta(t, 100, variance, 4*6.3)
}

func TestASurgeMultipliesTheRate(t *testing.T) {
	w := World{Service: healthyService, Clients: patientClient(1000), For: 50 * sec}
	w.Clients[0].From, w.Clients[0].To = 5*sec, 40*sec
	w.Clients[0].Surge = []Surge{
		{Span{10 * sec, 30 * sec}, 3},
		{Span{20 * sec, 30 * sec}, 0.5},
		{Span{30 * sec, 35 * sec}, 0},
	}
	f := Run(w, None(), 1)
	n := [10]int{}
	for i, s := range f.Series {
		n[i/5] += s.Offered
	}
	for i, expected := range []float64{0, 5000, 15_000, 15_000, 7500, 7500, 0, 5000, 0, 0} {
		require.InDelta(t, expected, n[i], 4*math.Sqrt(expected), "from %d s on", 5*i)
	}
}

func TestTheCallsAreTheSameWhateverTheGuardDoes(t *testing.T) {
	type offer struct {
		process int
		hurried bool
		time    time.Duration
	}
	w := World{
		Service: Service{Servers: 5, Time: Exponential(50 * ms), Queue: 10, Hosts: 3, ErrorRate: 0.1},
		Clients: []Client{{
			Rate: 300, Timeout: 100 * ms, HurriedShare: 0.3, Hurried: 20 * ms, Processes: 4,
			Retries: 2, Backoff: 30 * ms,
		}},
		For: 10 * sec,
	}
	offers := func(refuses int) map[time.Duration]offer {
		all := map[time.Duration]offer{}
		Run(w, Maker{Name: "refuses some", New: func(Setting) Guard {
			n := 0
			return testGuard(func(ctx context.Context, f func(context.Context) error) error {
				if a := ctx.(*deadline).attempt; a.number == 0 {
					all[a.call.began] = offer{a.call.process, a.call.hurried, a.time}
				}
				if n++; refuses > 0 && n%refuses == 0 {
					return &refusal{}
				}
				return f(ctx)
			})
		}}, 3)
		return all
	}
	none := offers(0)
	require.Greater(t, len(none), 2500)
	require.Equal(t, none, offers(2))
	require.Equal(t, none, offers(1))
}

func TestTimeoutsAreThoseOfTheCaller(t *testing.T) {
	w := World{
		Service: Service{Servers: 1e6, Time: Constant(sec)},
		Clients: []Client{{Rate: 1000, Timeout: 900 * ms, HurriedShare: 0.25, Hurried: 50 * ms}},
		For:     10 * sec,
	}
	records, f := runRecorded(w, 1)
	hurried := 0
	for _, r := range records {
		require.ErrorIs(t, r.result, context.DeadlineExceeded)
		require.ErrorIs(t, r.ctxErr, context.DeadlineExceeded)
		if r.call.hurried {
			hurried++
			require.Equal(t, 50*ms, r.took())
			continue
		}
		require.Equal(t, 900*ms, r.took())
	}
	require.InDelta(t, 0.25, float64(hurried)/float64(len(records)), 0.02)
	require.Equal(t, len(records)-hurried, f.OfferedUnhurried)
}

func TestAUserOfAClosedLoopWaitsAndThinks(t *testing.T) {
	w := World{
		Service: Service{Servers: 1e6, Time: Constant(100 * ms)},
		Clients: []Client{{Users: 5, Processes: 4, Think: 300 * ms, Timeout: sec}},
		For:     200 * sec,
	}
	records, f := runRecorded(w, 1)
	// 20 users call once in 400 ms on average.
	require.InDelta(t, 20*200/0.4, f.Offered, 4*math.Sqrt(20*200/0.4))
	ends := map[int]time.Duration{}
	perProcess := map[int]int{}
	for _, r := range byStart(records) {
		require.GreaterOrEqual(t, r.from, ends[r.call.user])
		ends[r.call.user] = r.to
		require.Equal(t, r.call.user%4, r.call.process)
		perProcess[r.call.process]++
	}
	require.Len(t, ends, 20)
	require.Len(t, perProcess, 4)
}
