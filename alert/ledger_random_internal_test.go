package alert

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ledgerRun is a ledger, the alerts of a monitor, and a receiver that does what it likes.
type ledgerRun struct {
	*ledger
	random *rand.Rand
	now    time.Time
	alerts map[string]Alert // of the monitor
	known  map[string]State // to the receiver
	flying []Alert
}

// change lets some alerts fire, resolve and go, and offers them.
func (r *ledgerRun) change() {
	for _, n := range r.random.Perm(20)[:r.random.IntN(4)] { // each takes one step in an evaluation
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
	var all []Alert
	for _, a := range r.alerts {
		all = append(all, a)
	}
	r.offer(all, r.now)
}

// attempt takes a batch or ends the one that was taken.
func (r *ledgerRun) attempt(works bool) {
	if r.flying == nil {
		r.flying = r.take(1+r.random.IntN(4), r.now)
		return
	}
	outcomes := []*DeliveryError{nil, {Kind: ServerError}, {Kind: Timeout}, {Kind: Unreachable}, {Refused: true}}
	failed := outcomes[r.random.IntN(len(outcomes))]
	if works {
		failed = nil
	}
	if failed == nil || failed.Kind == Timeout && r.random.IntN(2) == 0 {
		for _, a := range r.flying {
			r.known[a.ID] = a.State
		}
	}
	r.settle(r.flying, failed, r.now)
	r.flying = nil
}

func (r *ledgerRun) check(t *testing.T) {
	t.Helper()
	owed, gone := 0, 0
	for id, e := range r.entries {
		if e.queue != nil {
			owed++
		}
		if e.goneAt != nil {
			gone++
		}
		needed := e.offered || e.flying || e.queue != nil && e.told // others are forgotten
		placed := e.want.ID == id && (e.queue == nil || e.place.Value == e) && (e.goneAt == nil || !e.offered)
		if !needed || !placed {
			require.Fail(t, "an entry that should not be", "%+v", e)
		}
	}
	require.Equal(t, owed, r.owed())
	require.Equal(t, gone, r.gone.Len())
}

func TestLedgerKeepsItsBooksWhateverTheReceiverDoes(t *testing.T) {
	for seed := range uint64(60) {
		r := &ledgerRun{
			ledger: newLedger([]time.Duration{0, time.Minute, time.Hour}[seed%3]), random: rand.New(rand.NewPCG(seed, 1)),
			now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), alerts: map[string]Alert{}, known: map[string]State{},
		}
		for range 300 {
			r.now = r.now.Add(time.Duration(r.random.IntN(60)) * time.Second)
			if r.random.IntN(2) == 0 {
				r.change()
			} else {
				r.attempt(false)
			}
			r.check(t)
		}
		r.hurry()
		for r.flying != nil || r.due.Len() > 0 {
			r.attempt(true)
			r.check(t)
		}
		for id, state := range r.known {
			require.Equal(t, r.alerts[id].State == Firing, state == Firing, "seed %d: what the receiver knows of alert %s", seed, id)
		}
		for id, a := range r.alerts {
			if a.State == Firing {
				require.Equal(t, Firing, r.known[id], "seed %d: it has heard of alert %s", seed, id)
			}
		}
	}
}
