package read

import (
	"sync"

	"github.com/weir-go/weir/stat"
)

// pendingSeries holds the series that were added after the table was made. The next reading will
// find them.
type pendingSeries struct {
	mu       sync.Mutex
	byID     map[string]seriesOwner
	byMember map[*member][]string // IDs
	used     bool                 // the maps have held something
}

// seriesOwner is the series that has an ID, and the first member that showed it.
type seriesOwner struct {
	series *stat.Series
	from   *member
}

func newPending() *pendingSeries {
	return &pendingSeries{byID: map[string]seriesOwner{}, byMember: map[*member][]string{}}
}

func (p *pendingSeries) find(id string) (seriesOwner, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.byID[id]
	return found, ok
}

// add adds the series without a fault.
func (p *pendingSeries) add(list []newSeries) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range list {
		if f.fault == noFault {
			p.byID[f.id] = seriesOwner{f.series, f.from}
			p.byMember[f.from] = append(p.byMember[f.from], f.id)
		}
	}
	p.used = true
}

// removeUpTo removes the series of members up to the last one that has been read.
func (p *pendingSeries) removeUpTo(last int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for m := range p.byMember {
		if m.order <= last {
			p.removeLocked(m)
		}
	}
	if len(p.byMember) == 0 && p.used { // a map never shrinks, so start with new ones
		p.byID, p.byMember, p.used = map[string]seriesOwner{}, map[*member][]string{}, false
	}
}

// remove removes the series of a member.
func (p *pendingSeries) remove(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removeLocked(m)
}

func (p *pendingSeries) removeLocked(m *member) {
	for _, id := range p.byMember[m] {
		if p.byID[id].from == m {
			delete(p.byID, id)
		}
	}
	delete(p.byMember, m)
}
