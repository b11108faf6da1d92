package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// faultyWorld returns a service of 50 servers that answers 200 calls per second in 100 ms each, so
// that 20 are busy. It has faults.
func faultyWorld(faults ...Fault) World {
	return World{
		Service: Service{Servers: 50, Time: Constant(100 * ms), Queue: 1e6},
		Faults:  faults,
		Clients: patientClient(200),
		For:     20 * sec,
	}
}

func TestADownServiceFailsAllCalls(t *testing.T) {
	for _, failTime := range []time.Duration{0, 5 * ms} {
		records, _ := runRecorded(faultyWorld(Fault{Span: Span{5 * sec, 10 * sec}, Down: true, FailTime: failTime}), 1)
		for _, r := range records {
			switch {
			case r.from <= 4900*ms, r.from >= 10*sec:
				require.NoError(t, r.result)
				require.Equal(t, 100*ms, r.took())
			case r.from < 5*sec:
				require.ErrorIs(t, r.result, errReset)
				require.Equal(t, 5*sec, r.to)
			default:
				var down *unavailable
				require.ErrorAs(t, r.result, &down)
				require.Equal(t, max(failTime, ms), r.took())
			}
		}
	}
}

func TestASlowServiceTakesLongerFromTheStartOfACall(t *testing.T) {
	w := faultyWorld(
		Fault{Span: Span{5 * sec, 10 * sec}, Slower: 2},
		Fault{Span: Span{8 * sec, 12 * sec}, Slower: 1.25},
	)
	w.Service.Servers = 500
	records, _ := runRecorded(w, 1)
	for _, r := range records {
		expected := 100 * ms
		if r.from >= 5*sec && r.from < 10*sec {
			expected = 200 * ms
		}
		if r.from >= 8*sec && r.from < 12*sec {
			expected = expected * 5 / 4
		}
		require.Equal(t, expected, r.took())
	}
}

func TestLostCapacityFinishesWhatItHasBegun(t *testing.T) {
	w := faultyWorld(Fault{Span: Span{5 * sec, 10 * sec}, Capacity: 0.1})
	records, _ := runRecorded(w, 1)
	served := 0
	for _, r := range records {
		start := r.to - 100*ms
		if r.from < 5*sec {
			require.Equal(t, r.from, start)
		}
		if start < 5100*ms || start >= 10*sec {
			continue
		}
		served++
		busy := 0
		for _, other := range records {
			if begun := other.to - 100*ms; begun < start && other.to > start {
				busy++
			}
		}
		require.Less(t, busy, 5)
	}
	// Five servers begin ten calls each in a second. About 20 are busy when the capacity falls, so
	// the first call begins 75 ms later, when four of them are still busy.
	require.InDelta(t, 5*10*4.9, served, 5)
}

func TestAHangStopsAllWorkUntilItsEnd(t *testing.T) {
	records, f := runRecorded(faultyWorld(Fault{Span: Span{5 * sec, 10 * sec}, Capacity: NoCapacity}), 1)
	for _, r := range records {
		switch {
		case r.to <= 5*sec:
			require.Equal(t, 100*ms, r.took())
		case r.from < 5*sec:
			require.Equal(t, 5100*ms, r.took())
		default:
			require.GreaterOrEqual(t, r.to, 10*sec)
		}
	}
	require.Equal(t, time.Duration(f.Offered)*100*ms, f.Worked, "a hang is no work")
}

func TestAServiceThatGoesDownWhileItHangsResetsItsCalls(t *testing.T) {
	records, f := runRecorded(faultyWorld(
		Fault{Span: Span{5 * sec, 9 * sec}, Capacity: NoCapacity},
		Fault{Span: Span{8 * sec, 10 * sec}, Down: true},
	), 1)
	var worked time.Duration
	for _, r := range records {
		switch {
		case r.result == nil:
			worked += 100 * ms
		case r.from < 5*sec:
			require.Equal(t, 8*sec, r.to)
			worked += 5*sec - r.from
		}
	}
	require.Equal(t, worked, f.Worked)
}

func TestAFlappingFaultIsThereInTheFirstHalfOfEachPeriod(t *testing.T) {
	w := faultyWorld(Fault{Span: Span{5 * sec, 12500 * ms}, Period: 2 * sec, Slower: 2})
	w.Service.Servers = 500
	records, _ := runRecorded(w, 1)
	for _, r := range records {
		expected := 100 * ms
		for _, s := range []Span{{5 * sec, 6 * sec}, {7 * sec, 8 * sec}, {9 * sec, 10 * sec}, {11 * sec, 12 * sec}} {
			if s.holds(r.from) {
				expected = 200 * ms
			}
		}
		require.Equal(t, expected, r.took())
	}
}

func TestAFaultAtOneHostDoesNotAffectTheOthers(t *testing.T) {
	w := faultyWorld(Fault{Span: Span{5 * sec, 10 * sec}, Down: true, Host: 3})
	w.Service.Hosts = 10
	records, _ := runRecorded(w, 1)
	failed := 0
	for _, r := range records {
		if r.result == nil {
			continue
		}
		failed++
		require.Equal(t, 2, r.host)
	}
	require.InDelta(t, 100, failed, 40, "a tenth of five seconds")
}

func TestAColdCacheWarmsWithEachCall(t *testing.T) {
	w := faultyWorld(Fault{Span: Span{5 * sec, 10 * sec}, Down: true, Cold: 11, ColdCalls: 100})
	w.Service.Servers = 1
	w.Service.Time = Constant(ms)
	records, _ := runRecorded(w, 1)
	n := 0
	for _, r := range byStart(records) {
		switch {
		case r.from < 5*sec:
			require.NoError(t, r.result)
			require.Equal(t, ms, r.works)
		case r.from >= 10*sec:
			// 11 ms for the first one, then 0.1 ms less for each.
			expected := max(11*ms-time.Duration(n)*ms/10, ms)
			require.InDelta(t, expected, r.works, 10, "the call %d", n)
			n++
		}
	}
	require.Greater(t, n, 1000)
}
