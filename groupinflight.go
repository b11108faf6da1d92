package weir

import "github.com/weir-go/weir/internal/instrument"

// inFlight returns the calls in flight of all keys, and the lowest bound of a key. The bounds of
// the keys differ only if they are adaptive.
func (p *groupParts[K]) inFlight(g *Group[K]) instrument.Bound {
	lowest := slotHooks.Bound(p.withoutRoom)
	calls := lowest.Calls
	for _, gate := range g.All() {
		if l := gate.setup.Load().inFlight; l != nil && l != p.withoutRoom {
			b := slotHooks.Bound(l)
			calls += b.Calls
			if b.Limit < lowest.Limit {
				lowest = b
			}
		}
	}
	lowest.Calls = calls
	return lowest
}
