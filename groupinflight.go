package weir

// inFlight returns the calls in flight of all keys, and the lowest bound of a key. Only adaptive bounds
// differ.
func (p *groupParts[K]) inFlight(g *Group[K]) (calls, limit int) {
	calls, limit = p.withoutRoom.InFlight(), p.withoutRoom.Limit()
	for _, gate := range g.All() {
		if l := gate.setup.Load().inFlight; l != nil {
			calls += l.InFlight()
			limit = min(limit, l.Limit())
		}
	}
	return calls, limit
}
