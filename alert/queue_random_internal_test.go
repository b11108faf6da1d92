package alert

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// queueRun is a queue, the alerts of a monitor, and a receiver whose answers are random.
type queueRun struct {
	*queue
	random *rand.Rand
	now    time.Time
	alerts map[string]Alert // of the monitor
	known  map[string]State // what the receiver was told last
	batch  []Alert          // in flight

	silences bool
	silenced map[string]bool // by the latest evaluation
}

// evaluate lets some alerts fire, resolve and disappear, and updates the queue.
func (r *queueRun) evaluate() {
	for _, n := range r.random.Perm(20)[:r.random.IntN(4)] { // an alert changes once per evaluation
		id := fmt.Sprint(n)
		a, there := r.alerts[id]
		switch {
		case there && a.State == Firing:
			r.alerts[id] = Alert{ID: id, State: Resolved, EndsAt: r.now}
		case there && r.random.IntN(2) == 0:
			delete(r.alerts, id)
		default:
			r.alerts[id] = Alert{ID: id, State: Firing}
		}
	}
	r.update(r.all(), r.now)
}

// all returns the alerts, some of them silenced if the run has silences. A silence lasts for
// several evaluations.
func (r *queueRun) all() (all []Alert) {
	for id, a := range r.alerts {
		if r.silences && r.random.IntN(4) == 0 {
			r.silenced[id] = !r.silenced[id]
		}
		if r.silences && r.silenced[id] {
			a.SilencedBy = "x"
		}
		all = append(all, a)
	}
	return all
}

// attempt starts a delivery, or finishes the one in flight.
func (r *queueRun) attempt(works bool) {
	if r.batch == nil {
		r.batch = r.nextBatch(1+r.random.IntN(4), r.now)
		for _, a := range r.batch {
			if r.silences && a.State == Firing && r.silenced[a.ID] {
				panic("a silenced alert is sent")
			}
		}
		return
	}
	outcomes := []*DeliveryError{nil, {Kind: "http_5xx"}, {Kind: kindTimeout}, {Kind: kindUnreachable}, {Refused: true}}
	failed := outcomes[r.random.IntN(len(outcomes))]
	if works {
		failed = nil
	}
	if failed == nil || failed.Kind == kindTimeout && r.random.IntN(2) == 0 {
		for _, a := range r.batch {
			r.known[a.ID] = a.State
		}
	}
	r.finish(r.batch, failed, r.now)
	r.batch = nil
}

func (r *queueRun) check(t *testing.T) {
	t.Helper()
	pending, unreported := len(r.batch), 0
	for id, e := range r.entries {
		if e.list == r.due || e.list == r.refused {
			pending++
		}
		if e.unreportedAt != nil {
			unreported++
		}
		needed := e.reported || e.inFlight || e.list != nil && e.notified // all others are removed
		placed := e.alert.ID == id && (e.list == nil || e.place.Value == e) && (e.unreportedAt == nil || !e.reported)
		if !needed || !placed {
			require.Fail(t, "unexpected entry", "%+v", e)
		}
	}
	require.Equal(t, pending, r.pending())
	require.Equal(t, unreported, r.unreported.Len())
}

func TestQueueIsConsistentWhateverTheReceiverAnswers(t *testing.T) {
	for seed := range uint64(60) {
		r := &queueRun{
			queue: newQueue([]time.Duration{0, time.Minute, time.Hour}[seed%3]), random: rand.New(rand.NewPCG(seed, 1)),
			now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), alerts: map[string]Alert{}, known: map[string]State{},
			silences: seed%2 == 1, silenced: map[string]bool{},
		}
		for range 300 {
			r.now = r.now.Add(time.Duration(r.random.IntN(60)) * time.Second)
			if r.random.IntN(2) == 0 {
				r.evaluate()
			} else {
				r.attempt(false)
			}
			r.check(t)
		}
		r.silences = false // alerts that still fire are sent now
		r.update(r.all(), r.now)
		r.makeRefusedDue()
		for r.batch != nil || r.due.Len() > 0 {
			r.attempt(true)
			r.check(t)
		}
		for id, state := range r.known {
			require.Equal(t, r.alerts[id].State == Firing, state == Firing, "seed %d: the last state delivered of alert %s", seed, id)
		}
		for id, a := range r.alerts {
			if a.State == Firing {
				require.Equal(t, Firing, r.known[id], "seed %d: alert %s was delivered", seed, id)
			}
		}
	}
}
