package alert

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// If a receiver has heard that alerts fire and then becomes unreachable, it still has to hear later
// that each alert resolved. The number of such alerts is unbounded, because keys may come from
// requests.
func TestQueueOfAnUnreachableReceiverIsBounded(t *testing.T) {
	q := newQueue(0)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const rounds, members, most = 15, 1000, 10_000
	for round := range rounds {
		var firing, resolved []Alert
		for i := range members {
			a := Alert{ID: fmt.Sprint(round, " ", i), State: Firing}
			firing = append(firing, a)
			a.State, a.EndsAt = Resolved, at
			resolved = append(resolved, a)
		}
		q.update(firing, at)
		batch := q.nextBatch(rounds*members, at)
		q.finish(batch[len(batch)-members:], nil, at) // only the newest are delivered
		q.finish(batch[:len(batch)-members], &DeliveryError{Kind: kindUnreachable}, at)
		q.update(resolved, at)
		q.update(nil, at)
		require.LessOrEqual(t, len(q.entries), most)
		require.Equal(t, len(q.entries), q.pending())
		require.Equal(t, q.unreported.Len(), q.pending())
	}
	require.Len(t, q.entries, most)
	require.EqualValues(t, rounds*members-most, q.dropped)
	require.Contains(t, q.entries, fmt.Sprint(rounds-1, " ", members-1), "the newest alerts are kept")
}

// Many refused alerts may come due at once. A new alert waits for at most one of them.
func TestNewAlertsDoNotWaitForRefusedOnes(t *testing.T) {
	q := newQueue(0)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var alerts []Alert
	fire := func(id string) {
		alerts = append(alerts, Alert{ID: id, State: Firing})
		q.update(alerts, at)
	}
	for i := range 10 {
		fire(fmt.Sprint("bad ", i))
		q.finish(q.nextBatch(1, at), &DeliveryError{Refused: true}, at)
	}
	require.Empty(t, q.nextBatch(1, at.Add(refusedRetry-1)))
	at = at.Add(refusedRetry)
	var order []string
	for i := range 4 {
		fire(fmt.Sprint("new ", i))
		for _, a := range q.nextBatch(1, at) {
			order = append(order, a.ID)
			q.finish([]Alert{a}, nil, at)
		}
	}
	require.Equal(t, []string{"new 0", "bad 0", "new 1", "bad 1"}, order)
}
