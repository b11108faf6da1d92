package alert

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// silencedRun is a queue of one alert.
type silencedRun struct {
	*queue
	t  *testing.T
	at time.Time
}

func newSilencedRun(t *testing.T, repeat time.Duration) *silencedRun {
	return &silencedRun{newQueue(repeat), t, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// see updates the queue with the alert in a state.
func (r *silencedRun) see(s State, silencedBy string) {
	r.at = r.at.Add(time.Second)
	r.update([]Alert{{ID: "x", State: s, SilencedBy: silencedBy}}, r.at)
}

// send starts a delivery and requires that it is of that state, or that there is none.
func (r *silencedRun) send(want State) []Alert {
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

// The alert changes three times while the receiver takes its time.
func TestResolveIsSentIfASlowReceiverGotTheFiringAlert(t *testing.T) {
	r := newSilencedRun(t, 0)
	r.see(Firing, "")
	batch := r.send(Firing)
	r.see(Resolved, "")
	r.see(Firing, "s")
	r.see(Resolved, "s")
	r.finish(batch, nil, r.at)
	r.finish(r.send(Resolved), nil, r.at)
	r.send("")
	require.Zero(t, r.pending())
}

func TestSilencedAlertThatResolvedIsNotRepeated(t *testing.T) {
	r := newSilencedRun(t, time.Minute)
	r.see(Firing, "s")
	r.see(Resolved, "")
	r.at = r.at.Add(10 * time.Minute)
	r.see(Resolved, "")
	r.send("")
	require.Empty(t, r.entries)
	require.Zero(t, r.dropped)
	require.EqualValues(t, 1, r.silenced)
}

func TestAlertRefusedWhenItsSilenceBeginsIsHeld(t *testing.T) {
	for _, failed := range []*DeliveryError{{Refused: true}, {Kind: kindUnreachable}} {
		r := newSilencedRun(t, 0)
		r.see(Firing, "")
		batch := r.send(Firing)
		r.see(Firing, "s")
		r.finish(batch, failed, r.at)
		require.Zero(t, r.pending())
		require.Zero(t, r.refusals)
		r.at = r.at.Add(time.Hour)
		r.see(Firing, "s")
		r.send("")
		r.see(Firing, "")
		r.send(Firing)
	}
}

func TestSilencedAlertThatIsNoLongerReportedIsForgotten(t *testing.T) {
	r := newSilencedRun(t, 0)
	r.see(Firing, "s")
	r.update(nil, r.at)
	require.Empty(t, r.entries)
	require.Zero(t, r.held.Len())
	require.Zero(t, r.dropped)
}

func TestKnownAlertIsNotRepeatedDuringASilence(t *testing.T) {
	r := newSilencedRun(t, time.Minute)
	r.see(Firing, "")
	r.finish(r.send(Firing), nil, r.at)
	r.at = r.at.Add(time.Hour)
	r.see(Firing, "s")
	r.send("")
	require.Zero(t, r.silenced, "nothing new was held back")
	r.see(Firing, "")
	r.send(Firing)
}
