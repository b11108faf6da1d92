package sim

import "time"

// event is something that happens at a time of the simulation.
type event struct {
	at      time.Duration
	kind    kind
	attempt *attempt
	// index is the index of a mark, of the fault of a toggle, or of the client of an arrival.
	// Otherwise it is the version of the attempt.
	index int
}

// The index of a mark.
const (
	markWarm = iota
	markTrouble
	markAfter
	markEnd
	marks
)

// stale reports whether the event no longer matters.
func (e event) stale() bool {
	switch e.kind {
	case expire:
		return e.attempt.ctx.err != nil
	case finish, fail:
		return e.attempt.version != e.index
	default:
		return false
	}
}

// kind is what happens. Of several events at one instant, the lower kind comes first, and then the
// older call. So the order never depends on goroutines.
type kind uint8

const (
	mark    kind = iota // the warmup or the trouble begins or ends
	toggle              // a fault begins or ends
	finish              // a server has finished an attempt
	fail                // a service that is down answers
	expire              // the deadline of an attempt
	wake                // a suspended process continues
	enter               // an attempt reaches the service
	begin               // an attempt begins, after a wait
	arrive              // the next call of an open loop begins
	overdue             // the simulation should have ended long ago
)

func (e event) before(f event) bool {
	switch {
	case e.at != f.at:
		return e.at < f.at
	case e.kind != f.kind:
		return e.kind < f.kind
	case e.attempt == nil || f.attempt == nil:
		return e.index < f.index
	}
	return e.attempt.isBefore(f.attempt)
}

// events is a binary heap with the next event first. container/heap would cost twice as much.
type events []event

func (es *events) push(e event) {
	h := append(*es, e)
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = e
	*es = h
}

func (es *events) pop() event {
	h := *es
	first, e := h[0], h[len(h)-1]
	h[len(h)-1] = event{}
	h = h[:len(h)-1]
	*es = h
	if len(h) == 0 {
		return first
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(e) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = e
	return first
}
