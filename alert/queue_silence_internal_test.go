package alert

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// silencedQueue is a queue of one alert.
type silencedQueue struct {
	*queue
	t  *testing.T
	at time.Time
}

func newSilencedQueue(t *testing.T, repeat time.Duration) *silencedQueue {
	return &silencedQueue{newQueue(repeat), t, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// updateAlertTo updates the queue with the alert in a state.
func (r *silencedQueue) updateAlertTo(s State, silencedBy string) {
	r.at = r.at.Add(time.Second)
	r.update([]Alert{{ID: "x", State: s, SilencedBy: silencedBy}}, r.at)
}

// deliver starts a delivery and requires that its alert has the state want. If want is "", there
// must be nothing to deliver.
func (r *silencedQueue) deliver(want State) []Alert {
	r.t.Helper()
	batch := r.nextBatch(1, r.at)
	if want == "" {
		require.Empty(r.t, batch)
		return nil
	}
	require.Len(r.t, batch, 1)
	require.Equal(r.t, want, batch[0].State)
	return batch
}

// The alert changes three times while the delivery is in flight.
func TestResolveIsSentIfASlowReceiverGotTheFiringAlert(t *testing.T) {
	r := newSilencedQueue(t, 0)
	r.updateAlertTo(Firing, "")
	batch := r.deliver(Firing)
	r.updateAlertTo(Resolved, "")
	r.updateAlertTo(Firing, "s")
	r.updateAlertTo(Resolved, "s")
	r.finish(batch, nil, r.at)
	r.finish(r.deliver(Resolved), nil, r.at)
	r.deliver("")
	require.Zero(t, r.pending())
}

func TestSilencedAlertThatResolvedIsNotRepeated(t *testing.T) {
	r := newSilencedQueue(t, time.Minute)
	r.updateAlertTo(Firing, "s")
	r.updateAlertTo(Resolved, "")
	r.at = r.at.Add(10 * time.Minute)
	r.updateAlertTo(Resolved, "")
	r.deliver("")
	require.Empty(t, r.entries)
	require.Zero(t, r.dropped)
	require.EqualValues(t, 1, r.silenced)
}

func TestAlertRefusedWhenItsSilenceBeginsIsHeld(t *testing.T) {
	for _, failed := range []*DeliveryError{{Refused: true}, {Kind: kindUnreachable}} {
		r := newSilencedQueue(t, 0)
		r.updateAlertTo(Firing, "")
		batch := r.deliver(Firing)
		r.updateAlertTo(Firing, "s")
		r.finish(batch, failed, r.at)
		require.Zero(t, r.pending())
		require.Zero(t, r.refusals)
		r.at = r.at.Add(time.Hour)
		r.updateAlertTo(Firing, "s")
		r.deliver("")
		r.updateAlertTo(Firing, "")
		r.deliver(Firing)
	}
}

func TestSilencedAlertThatIsNoLongerReportedIsForgotten(t *testing.T) {
	r := newSilencedQueue(t, 0)
	r.updateAlertTo(Firing, "s")
	r.update(nil, r.at)
	require.Empty(t, r.entries)
	require.Zero(t, r.held.Len())
	require.Zero(t, r.dropped)
}

func TestKnownAlertIsNotRepeatedDuringASilence(t *testing.T) {
	r := newSilencedQueue(t, time.Minute)
	r.updateAlertTo(Firing, "")
	r.finish(r.deliver(Firing), nil, r.at)
	r.at = r.at.Add(time.Hour)
	r.updateAlertTo(Firing, "s")
	r.deliver("")
	require.Zero(t, r.silenced, "nothing new was held back")
	r.updateAlertTo(Firing, "")
	r.deliver(Firing)
}
