package alert

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A receiver that hears of each alert and then dies is owed the end of each, for ever. Strangers
// may make as many alerts as they like.
func TestLedgerOfADeadReceiverIsBounded(t *testing.T) {
	l := newLedger(0)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const rounds, members, most = 30, 1000, 10_000
	for round := range rounds {
		var firing, resolved []Alert
		for i := range members {
			a := Alert{ID: fmt.Sprint(round, " ", i), State: Firing}
			firing = append(firing, a)
			a.State, a.EndsAt = Resolved, at
			resolved = append(resolved, a)
		}
		l.offer(firing, at)
		told := l.take(rounds*members, at)
		l.settle(told[len(told)-members:], nil, at) // it hears of the newest
		l.settle(told[:len(told)-members], &DeliveryError{Kind: Unreachable}, at)
		l.offer(resolved, at)
		l.offer(nil, at)
		require.LessOrEqual(t, len(l.entries), most)
		require.Equal(t, len(l.entries), l.owed())
		require.Equal(t, l.gone.Len(), l.owed())
	}
	require.Len(t, l.entries, most)
	require.EqualValues(t, rounds*members-most, l.dropped)
	require.Contains(t, l.entries, fmt.Sprint(rounds-1, " ", members-1), "the newest are kept")
}

// Many alerts that were refused may come due at once. News goes before all of them but one.
func TestNewsIsNotBehindWhatWasRefused(t *testing.T) {
	l := newLedger(0)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var alerts []Alert
	fire := func(id string) {
		alerts = append(alerts, Alert{ID: id, State: Firing})
		l.offer(alerts, at)
	}
	for i := range 10 {
		fire(fmt.Sprint("bad ", i))
		l.settle(l.take(1, at), &DeliveryError{Refused: true}, at)
	}
	require.Empty(t, l.take(1, at.Add(refusedRetry-1)))
	at = at.Add(refusedRetry)
	var order []string
	for i := range 4 {
		fire(fmt.Sprint("news ", i))
		for _, a := range l.take(1, at) {
			order = append(order, a.ID)
			l.settle([]Alert{a}, nil, at)
		}
	}
	require.Equal(t, []string{"news 0", "bad 0", "news 1", "bad 1"}, order)
}
