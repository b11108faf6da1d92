package harm

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

const s = time.Second

// trace makes calls from a line: one call per step, each of which takes a tenth of the step. g is a
// good call, f a failed one and r a refused one.
func trace(step time.Duration, line string) (calls []sim.Call) {
	ends := map[rune]sim.End{'g': sim.Good, 'f': sim.Failed, 'r': sim.Refused}
	for i, c := range line {
		at := time.Duration(i) * step
		calls = append(calls, sim.Call{Began: at, Ended: at + step/10, End: ends[c]})
	}
	return calls
}

func repeat(n int, line string) (all string) {
	for range n {
		all += line
	}
	return all
}

func TestAnOutageIsASpanInWhichCallsFailWithoutAGuard(t *testing.T) {
	for name, test := range map[string]struct {
		line string
		want []sim.Span
	}{
		"none":                          {repeat(100, "g"), nil},
		"fewer than half":               {repeat(100, "ggfgf"), nil},
		"a run shorter than it must be": {repeat(20, "g") + repeat(4, "f") + repeat(60, "g"), nil},
		"too few calls for a rate":      {repeat(9, "f") + repeat(60, "g"), nil},
		"a run":                         {repeat(30, "g") + repeat(14, "f") + repeat(60, "g"), []sim.Span{{From: 30 * s, To: 43*s + s/10}}},
		"two":                           {repeat(14, "f") + repeat(60, "g") + repeat(14, "f") + repeat(60, "g"), []sim.Span{{From: 0, To: 13*s + s/10}, {From: 74 * s, To: 87*s + s/10}}},
	} {
		require.Equal(t, test.want, outages(trace(s, test.line)), name)
	}
}

// With 10 calls per second, the rate over the window decides, and an outage ends when its last call
// has failed.
func TestAnOutageIsReckonedOverTheWindow(t *testing.T) {
	line := repeat(200, "g") + repeat(50, "f") + repeat(200, "g")
	calls := trace(s/10, line)
	require.Equal(t, []sim.Span{{From: 20 * s, To: 24*s + 910*time.Millisecond}}, outages(calls))
	for i := range calls {
		calls[i].Ended = calls[i].Began + 5*s
	}
	require.Equal(t, []sim.Span{{From: 20 * s, To: 29*s + 900*time.Millisecond}}, outages(calls))

	// half of the calls, over more than the window
	half := repeat(40, "g") + repeat(60, "gf") + repeat(40, "g") // four calls per second
	require.Equal(t, []sim.Span{{From: 10*s + s/4, To: 39*s + 3*s/4 + s/40}}, outages(trace(s/4, half)))
	require.Empty(t, outages(trace(s/4, repeat(40, "g")+repeat(40, "ggf")+repeat(40, "g"))))
	require.Empty(t, outages(trace(s, half)), "ten calls in the window are too few")

	// 24 of 100 calls are neither half of the window nor a run
	require.Empty(t, outages(trace(s/10, repeat(200, "g")+repeat(24, "f")+repeat(200, "g"))))
}

func TestTheLimitOfTheWayBackIsAFunctionOfTheConfigAndTheCalls(t *testing.T) {
	calls := trace(s, repeat(200, "g"))
	const least = 10*s + 1*s + 20*s
	require.Equal(t, least+3*s/10+20*s, wayBack(calls, 50*s, 0, 1))
	require.Equal(t, least+3*s/10+40*s, wayBack(calls, 50*s, 0, 2), "each process has a half of the calls")
	require.Equal(t, least+3*s/10+20*s+11*s, wayBack(calls, 50*s, 10*s, 1), "the service has asked for 10 s")
	require.Equal(t, least+3*s/10+20*s+66*s, wayBack(calls, 50*s, time.Hour, 1))
	calls[100].Ended += time.Hour
	require.Equal(t, least+30*s+20*s, wayBack(calls, 50*s, 0, 1), "a probe has an end")
	require.Greater(t, wayBack(calls, 190*s, 0, 1), 1000*time.Hour, "too few calls are left")
}

func TestAGuardIsBackOnceItRefusesNothingForAWindow(t *testing.T) {
	for name, test := range map[string]struct {
		line string
		want time.Duration
	}{
		"at once":                   {repeat(60, "g"), 0},
		"after a while":             {repeat(20, "g") + repeat(7, "r") + repeat(60, "g"), 16 * s},
		"it refuses now and then":   {repeat(10, "g") + repeat(5, "rggggggggg") + repeat(60, "g"), 40 * s},
		"a failed call has passed":  {repeat(10, "g") + "rf" + repeat(60, "g"), 0},
		"never":                     {repeat(10, "g") + repeat(30, "rgg"), -1},
		"a little before the end":   {repeat(20, "g") + repeat(30, "r") + repeat(10, "g"), -1},
		"a refusal before the time": {repeat(10, "r") + repeat(50, "g"), 0},
	} {
		require.Equal(t, test.want, back(trace(s, test.line), 10*s), name)
	}
}

func TestWhatIsTakenOutEndsAfterTheWayBack(t *testing.T) {
	w := sim.World{Clients: []sim.Client{{}}}
	calls := trace(s, repeat(30, "g")+repeat(14, "f")+repeat(200, "g"))
	want := sim.Span{From: 30 * s, To: 43*s + s/10}
	want.To += wayBack(calls, want.To, 0, 1)
	require.Equal(t, []sim.Span{want}, takenOut(calls, w))

	in := covers([]sim.Span{{From: 2 * s, To: 4 * s}, {From: 5 * s, To: 6 * s}})
	var got []bool
	for at := range time.Duration(8) {
		got = append(got, in(at*s))
	}
	require.Equal(t, []bool{false, false, true, true, false, true, false, false}, got)
}

func TestSpansThatOverlapBecomeOne(t *testing.T) {
	var spans []sim.Span
	for _, s := range []sim.Span{{From: 5, To: 9}, {From: 20, To: 30}, {From: 25, To: 28}, {From: 7, To: 21}, {From: 40, To: 41}} {
		spans = join(spans, s)
	}
	require.Equal(t, []sim.Span{{From: 5, To: 30}, {From: 40, To: 41}}, spans)
}

// A guard is compared with the better one of the simple guards.
func TestRegretIsAgainstTheBestSimpleGuard(t *testing.T) {
	for name, test := range map[string]struct {
		out     sums
		class   Class
		bound   float64
		regret  float64
		harmful bool
	}{
		"as good as none":                 {sums{30000, 29990, 29000, 29990, 0}, Healthy, 0.05, 0, false},
		"a little worse":                  {sums{30000, 30000, 29000, 29980, 20}, Healthy, 0.05, 2.0 / 3000, false},
		"more than 0.1 %":                 {sums{30000, 30000, 29000, 29960, 40}, Healthy, 0.05, 4.0 / 3000, true},
		"too few calls for that":          {sums{3000, 3000, 2900, 2990, 10}, Healthy, 0.05, 1.0 / 300, false},
		"enough for that":                 {sums{3000, 3000, 2900, 2900, 100}, Healthy, 0.05, 1.0 / 30, true},
		"gobreaker is better":             {sums{30000, 16000, 20000, 18000, 0}, MostlyWell, 0.05, 0.1, true},
		"within the bound":                {sums{30000, 20000, 16000, 19200, 0}, MostlyWell, 0.05, 0.04, false},
		"not within the bound of another": {sums{30000, 20000, 16000, 19200, 0}, MostlyWell, 0.02, 0.04, true},
		"no promise":                      {sums{30000, 10000, 8000, 0, 30000}, Other, 0.02, 1, false},
		"better than both":                {sums{30000, 20000, 16000, 21000, 0}, MostlyWell, 0.02, -0.05, false},
	} {
		v := Verdict{Guard: Guard{Bound: test.bound}, Class: test.class}
		v.compare(sums{}, test.out)
		require.InDelta(t, test.regret, v.Regret, 1e-9, name)
		require.Equal(t, test.harmful, v.Harmful, name)
	}
}

// A breaker sees only the attempts of its process, and a gate per host those of a host.
func TestOutagesAreThoseOfAProcessOrOfAHost(t *testing.T) {
	var attempts []sim.Call
	for i, c := range trace(s/10, repeat(2000, "g")) {
		c.Process, c.Host = i%2, i/2%2
		firstFails := c.Process == 0 && c.Began >= 50*s && c.Began < 60*s
		hostFails := c.Host == 1 && c.Began >= 130*s && c.Began < 140*s
		if firstFails || hostFails && i%4 == 2 { // host 1 of process 0
			c.End = sim.Failed
		}
		attempts = append(attempts, c)
	}
	w := sim.World{Clients: []sim.Client{{Processes: 2}}}
	var all simple
	all.findOutages(w, attempts)
	require.Len(t, all.out[place{0, allHosts}], 2)
	require.Equal(t, 50*s, all.out[place{0, allHosts}][0].From)
	require.Empty(t, all.out[place{1, allHosts}])
	require.Empty(t, all.out[place{1, 0}])
	require.Len(t, all.out[place{0, 0}], 2, "an outage of the process is one of each host")
	require.Len(t, all.out[place{0, 1}], 2)

	call := func(process, host int, began time.Duration) sim.Call {
		return sim.Call{Process: process, Host: host, Began: began}
	}
	inOutage := all.inOutage(Guard{})
	require.False(t, inOutage(call(0, 0, 49*s)))
	require.True(t, inOutage(call(0, 0, 55*s)))
	require.False(t, inOutage(call(1, 0, 55*s)))
}
