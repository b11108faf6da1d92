package sim

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

// patientClient is a client without a timeout.
func patientClient(rate float64) []Client { return []Client{{Rate: rate, Timeout: time.Hour}} }

func byStart(records []record) []record {
	slices.SortFunc(records, func(a, b record) int { return int(a.from - b.from) })
	return records
}

// The recursion of Kiefer and Wolfowitz: a call begins when the first of the servers is free.
func TestAnswersComeAsInAFirstInFirstOutQueue(t *testing.T) {
	for seed := range uint64(5) {
		w := World{
			Service: Service{Servers: 3, Time: Lognormal(30*ms, 1.5), Queue: 1e6, Hosts: 2},
			Clients: patientClient(180),
			For:     20 * sec,
		}
		records, f := runRecorded(w, seed)
		require.Len(t, records, f.Offered)
		free := [2][3]time.Duration{}
		var waited int
		for _, r := range byStart(records) {
			servers := free[r.host][:]
			slices.Sort(servers)
			start := max(servers[0], r.from)
			if start > r.from {
				waited++
			}
			servers[0] = start + r.time
			require.Equal(t, servers[0], r.to)
			require.NoError(t, r.result)
		}
		require.Greater(t, waited, 1000)
	}
}

func TestAFullQueueFailsAtOnce(t *testing.T) {
	w := World{
		Service: Service{Servers: 1, Time: Constant(100 * ms), Queue: 2, RetryAfter: 7 * sec},
		Clients: patientClient(50),
		For:     10 * sec,
	}
	records, f := runRecorded(w, 1)
	inside := func(at time.Duration) (n int) {
		for _, r := range records {
			if r.result == nil && r.from < at && r.to > at {
				n++
			}
		}
		return n
	}
	for _, r := range byStart(records) {
		if inside(r.from) < 3 {
			require.NoError(t, r.result)
			continue
		}
		var after interface{ RetryAfter() time.Duration }
		require.ErrorAs(t, r.result, &after)
		require.Equal(t, 7*sec, after.RetryAfter())
		require.Equal(t, r.from, r.to)
	}
	// One server that is busy from the first call on answers every 100 ms.
	require.InDelta(t, 100, f.Good, 4)
	require.Equal(t, f.Failed, f.Erroneous)
}

func TestWorkForCallersThatHaveLeftIsWasted(t *testing.T) {
	w := World{
		Service: Service{Servers: 1, Time: Constant(100 * ms), Queue: 1e6},
		Clients: []Client{{Rate: 50, Timeout: 150 * ms}},
		For:     10 * sec,
	}
	_, f := runRecorded(w, 1)
	require.Equal(t, time.Duration(f.Offered)*100*ms, f.Worked, "all are served, in the end")
	require.Equal(t, time.Duration(f.Abandoned)*100*ms, f.Wasted)
	require.Less(t, f.Good, 10, "the queue is full of calls whose caller has gone")

	w.Service.DropsAbandoned = true
	_, f = runRecorded(w, 1)
	require.InDelta(t, 10*sec, f.Worked, float64(200*ms), "only the calls that began in time")
	require.Equal(t, f.Worked-time.Duration(f.Good)*100*ms, f.Wasted)
}

func TestAServiceThatDropsHasRoomInItsQueue(t *testing.T) {
	w := World{
		Service: Service{Servers: 1, Time: Constant(sec), Queue: 1, DropsAbandoned: true},
		Clients: []Client{{Rate: 50, Timeout: 100 * ms}},
		For:     10 * sec,
	}
	records, _ := runRecorded(w, 1)
	waits := 0
	for _, r := range records {
		if errors.Is(r.result, context.DeadlineExceeded) {
			require.Equal(t, 100*ms, r.took())
			waits++
		}
	}
	// A waiting call leaves the queue after 100 ms. Then the queue has room for a new call, which
	// comes 20 ms later on average. At most ten more calls time out, because a server works on
	// them.
	require.InDelta(t, 10_000/120, waits, 20)
}

func TestTheShareOfErrorsIsTheErrorRate(t *testing.T) {
	w := World{
		Service: Service{Servers: 100, Time: Constant(10 * ms), ErrorRate: 0.2},
		Faults: []Fault{
			{Span: Span{5 * sec, 15 * sec}, ErrorRate: 0.5, FailTime: ms},
			{Span: Span{10 * sec, 15 * sec}, ErrorRate: 1},
		},
		Clients: patientClient(1000),
		For:     20 * sec,
	}
	records, _ := runRecorded(w, 1)
	var n, failed [4]int
	for _, r := range records {
		part := int(r.from / (5 * sec))
		n[part]++
		if r.result == nil {
			require.Equal(t, 10*ms, r.took())
			continue
		}
		failed[part]++
		require.ErrorIs(t, r.result, errFailed)
		require.Contains(t, []time.Duration{10 * ms, ms}, r.took())
	}
	for part, expected := range []float64{0.2, 0.6, 1, 0.2} {
		require.InDelta(t, expected, float64(failed[part])/float64(n[part]), 0.03)
	}
}

func TestEachHostGetsItsShare(t *testing.T) {
	w := World{
		Service: Service{Servers: 1, Time: Constant(ms), Queue: 100, Hosts: 10},
		Clients: patientClient(1000),
		For:     20 * sec,
	}
	records, _ := runRecorded(w, 1)
	var n [10]int
	for _, r := range records {
		n[r.host]++
	}
	for _, calls := range n {
		require.InDelta(t, 2000, calls, 4*45, "four standard deviations")
	}
}
