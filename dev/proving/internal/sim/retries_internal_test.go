package sim

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// failingWorld is a service that fails all calls in 10 ms.
func failingWorld(c Client) World {
	c.Timeout = sec
	return World{
		Service: Service{Servers: 1e6, Time: Constant(10 * ms), ErrorRate: 1},
		Clients: []Client{c},
		For:     20 * sec,
	}
}

// waitsByAttempt returns the time between the attempts of each call, by the number of the later
// one.
func waitsByAttempt(records []record) map[int][]time.Duration {
	ends := map[*call]time.Duration{}
	all := map[int][]time.Duration{}
	for _, r := range byStart(records) {
		if r.number > 0 {
			all[r.number] = append(all[r.number], r.from-ends[r.call])
		}
		ends[r.call] = r.to
	}
	return all
}

func TestTheWaitBetweenAttemptsDoubles(t *testing.T) {
	records, f := runRecorded(failingWorld(Client{Rate: 100, Retries: 3, Backoff: 100 * ms}), 1)
	require.Len(t, records, 4*f.Offered)
	require.Equal(t, f.Offered, f.Failed)
	for number, all := range waitsByAttempt(records) {
		require.Len(t, all, f.Offered)
		mean := 50 * ms << number
		var sum time.Duration
		for _, wait := range all {
			require.Less(t, wait, 2*mean)
			sum += wait
		}
		require.InDelta(t, float64(mean), float64(sum)/float64(len(all)), 0.05*float64(mean))
	}
}

func TestABudgetBoundsRetries(t *testing.T) {
	// Nothing is good, so each process has only the ten retries of its full bucket.
	records, f := runRecorded(failingWorld(Client{Rate: 100, Retries: 3, Backoff: 100 * ms, Budget: 0.2, Processes: 4}), 1)
	require.Len(t, records, f.Offered+40)

	// A good call adds 0.2. With half of the attempts good, more than 0.2 retries per good call are
	// wanted, so all tokens are used.
	w := failingWorld(Client{Rate: 100, Retries: 3, Backoff: 100 * ms, Budget: 0.2})
	w.Service.ErrorRate = 0.5
	records, f = runRecorded(w, 1)
	require.InDelta(t, float64(f.Offered)+10+0.2*float64(f.Good), len(records), 2)
}

func TestAnObedientCallerWaitsForRetryAfter(t *testing.T) {
	c := Client{Rate: 100, Retries: 1, Backoff: 100 * ms, ObeysRetryAfter: true}
	w := failingWorld(c)
	w.Service.RetryAfter = 150 * ms
	w.Faults = []Fault{{Span: Span{0, 30 * sec}, Down: true}}
	records, _ := runRecorded(w, 1)
	longer := 0
	for _, wait := range waitsByAttempt(records)[1] {
		require.GreaterOrEqual(t, wait, 150*ms)
		if wait > 150*ms {
			longer++
		}
	}
	require.InDelta(t, 0.25, float64(longer)/float64(len(waitsByAttempt(records)[1])), 0.04, "uniform from 0 to 200 ms")

	w.Clients[0].ObeysRetryAfter = false
	records, _ = runRecorded(w, 1)
	require.Less(t, slices.Min(waitsByAttempt(records)[1]), 10*ms)
}

func TestARefusalIsRetriedWhenTheGuardSays(t *testing.T) {
	w := failingWorld(Client{Rate: 100, Retries: 2, ObeysRetryAfter: true})
	var tries []time.Duration
	f := Run(w, Maker{Name: "refuses", New: func(s Setting) Guard {
		return testGuard(func(ctx context.Context, _ func(context.Context) error) error {
			if a := ctx.(*deadline).attempt; a.call.index == 0 {
				tries = append(tries, s.run.now()-a.call.began)
			}
			return &refusal{retryAfter: 700 * ms}
		})
	}}, 1)
	require.Equal(t, []time.Duration{0, 700 * ms, 1400 * ms}, tries)
	require.Equal(t, f.Offered, f.Refused)
	require.Zero(t, f.Sent)
}
