package alert

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// If a rule has other labels for a time, its alert ends, and later begins again with the same
// identity. A receiver that never got the firing alert does not get the resolved one.
func TestAReceiverIsNotToldAgainOfAnAlertThatNeverEndedForIt(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	fires := Alert{ID: "a", State: Firing, StartsAt: at}
	resolves, later := fires, fires
	resolves.State, later.StartsAt = Resolved, at.Add(time.Second)
	for name, c := range map[string]struct {
		failed *DeliveryError // of the resolved state
		again  Alert
		due    int // when it fires again
		end    int // when it resolves again
	}{
		"unreachable":      {&DeliveryError{Kind: kindUnreachable}, fires, 0, 1},
		"may have arrived": {&DeliveryError{Kind: kindTimeout}, fires, 1, 1},
		"delivered":        {nil, fires, 1, 0},
		"a new alert":      {&DeliveryError{Kind: kindUnreachable}, later, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(0)
			for _, state := range []struct {
				alert  Alert
				failed *DeliveryError
			}{{fires, nil}, {resolves, c.failed}} {
				q.update([]Alert{state.alert}, at)
				q.finish(q.nextBatch(1, at), state.failed, at)
			}
			q.update([]Alert{c.again}, at)
			require.Equal(t, c.due, q.pending())
			q.update([]Alert{resolves}, at)
			require.Equal(t, c.end, q.pending(), "it is told of the end unless it has heard of it")
		})
	}
}
