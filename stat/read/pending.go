package read

import (
	"sync"

	"github.com/weir-go/weir/stat"
)

// pending holds the series that were added after the table was made. The next reading will find
// them.
type pending struct {
	mu       sync.Mutex
	byID     map[string]owner
	byMember map[*member][]string // IDs
	used     bool                 // the maps have held something
}

// owner is the series that has an ID, and the first member that showed it.
type owner struct {
	series *stat.Series
	from   *member
}

func newPending() *pending {
	return &pending{byID: map[string]owner{}, byMember: map[*member][]string{}}
}

func (p *pending) find(id string) (owner, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.byID[id]
	return found, ok
}

// add adds the series without a fault.
func (p *pending) add(list []newSeries) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range list {
		if f.fault == noFault {
			p.byID[f.id] = owner{f.series, f.from}
			p.byMember[f.from] = append(p.byMember[f.from], f.id)
		}
	}
	p.used = true
}

// removeUpTo removes the series of members up to the last one that has been read.
func (p *pending) removeUpTo(last int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for m := range p.byMember {
		if m.order <= last {
			p.removeLocked(m)
		}
	}
	if len(p.byMember) == 0 && p.used { // a map never shrinks, so start with new ones
		p.byID, p.byMember, p.used = map[string]owner{}, map[*member][]string{}, false
	}
}

// remove removes the series of a member.
func (p *pending) remove(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removeLocked(m)
}

func (p *pending) removeLocked(m *member) {
	for _, id := range p.byMember[m] {
		if p.byID[id].from == m {
			delete(p.byID, id)
		}
	}
	delete(p.byMember, m)
}
