package weir

import "github.com/weir-go/weir/inflight"

// current returns the gate, or the one that the key has now if the breaker was evicted or forgotten.
func (k *keyedGate[K]) current() *Gate {
	b := hooks.Live(k.breaker)
	if b == k.breaker {
		return &k.Gate
	}
	return k.group.gateOf(k.hold.key, b)
}

// setInFlight gives a new gate its bound on calls in flight. Keys without room share one.
func (g *Group[K]) setInFlight(k *keyedGate[K]) {
	k.keyed = k
	if hooks.Attached(k.breaker) == nil {
		k.Gate.setInFlight(g.withoutRoom)
	} else {
		k.Gate.setInFlight(slotHooks.New(g.name, int(g.maxConcurrent.Load()), g.adaptive))
	}
}

// setMaxConcurrent changes the bounds of all keys. The value is stored first, so that a gate that is
// stored meanwhile is either found here or finds the value.
func (g *Group[K]) setMaxConcurrent(n int) {
	if g.withoutRoom == nil {
		return
	}
	g.maxConcurrent.Store(int64(n))
	setLimit(g.withoutRoom, n)
	for _, gate := range g.All() {
		g.applyMaxConcurrent(gate)
	}
}

// applyMaxConcurrent gives the gate the limit of the group. It looks again after the change, so that the
// last of several callers leaves the latest limit.
func (g *Group[K]) applyMaxConcurrent(gate *Gate) {
	if gate.inFlight == nil {
		return
	}
	for set, n := int64(-1), g.maxConcurrent.Load(); set != n; n = g.maxConcurrent.Load() {
		setLimit(gate.inFlight, int(n))
		set = n
	}
}

// setLimit sets a limit that was validated.
func setLimit(l *inflight.Limiter, n int) {
	if err := l.SetLimit(n); err != nil {
		panic(err)
	}
}

// inFlight returns the calls in flight of all keys, and the lowest bound of a key. Only adaptive bounds
// differ.
func (g *Group[K]) inFlight() (calls, limit int) {
	calls, limit = g.withoutRoom.InFlight(), g.withoutRoom.Limit()
	for _, gate := range g.All() {
		calls += gate.inFlight.InFlight()
		limit = min(limit, gate.inFlight.Limit())
	}
	return calls, limit
}
