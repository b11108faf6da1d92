package weir

// inFlight returns the calls in flight of all keys, and the lowest bound of a key. The bounds of
// the keys differ only if they are adaptive.
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
