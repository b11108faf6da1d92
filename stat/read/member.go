package read

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weir-go/weir/stat"
)

// member is a source of a set.
type member struct {
	source stat.Source
	order  int         // of two members the later one has the greater
	gone   atomic.Bool // it was removed
}

// members are the sources of a set, in the order in which they came. A list that was
// read never changes: what is added stands behind its end, and what is removed is marked,
// and left out once half are gone. So either costs the same however many there are.
type members struct {
	list    atomic.Pointer[[]*member]
	removed atomic.Int64 // how many, ever

	mu    sync.Mutex
	last  int                     // the order of the newest
	gone  int                     // how many of the list are
	index map[stat.Source]*member // those that can be found by ==
}

func newMembers() *members {
	m := &members{index: map[stat.Source]*member{}}
	m.list.Store(&[]*member{})
	return m
}

// absent makes members of those sources that are not there, once each.
func (m *members) absent(sources []stat.Source) (list []*member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := make(map[stat.Source]bool, len(sources))
	for _, s := range sources {
		if findable(s) {
			if seen[s] || m.index[s] != nil {
				continue
			}
			seen[s] = true
		}
		m.last++
		list = append(list, &member{source: s, order: m.last})
	}
	return list
}

// add has the members read from now on.
func (m *members) add(more []*member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range more {
		if findable(one.source) {
			m.index[one.source] = one
		}
	}
	list := append(*m.list.Load(), more...)
	m.list.Store(&list)
}

// remove has the source read no more, and returns what it was; nil if it is not there.
func (m *members) remove(s stat.Source) *member {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !findable(s) {
		return nil
	}
	one := m.index[s]
	if one == nil {
		return nil
	}
	delete(m.index, s)
	one.gone.Store(true)
	m.removed.Add(1)
	m.gone++
	if list := *m.list.Load(); 2*m.gone >= len(list) {
		list = slices.DeleteFunc(slices.Clone(list), func(one *member) bool { return one.gone.Load() })
		m.list.Store(&list)
		m.gone = 0
	}
	return one
}

// findable says whether the source can be found by ==, which panics for some and is
// never true for one that holds a NaN.
func findable(s stat.Source) bool {
	if s == nil || !reflect.ValueOf(s).Comparable() {
		return false
	}
	itself := s
	return s == itself
}

// claims are the series that were added since the table was made: what the next
// reading will find, as far as that is known.
type claims struct {
	mu       sync.Mutex
	byID     map[string]claim
	byMember map[*member][]string
	used     bool // since the maps were made
}

// claim is a series and the first member that showed it.
type claim struct {
	series *stat.Series
	from   *member
}

func newClaims() *claims {
	return &claims{byID: map[string]claim{}, byMember: map[*member][]string{}}
}

func (c *claims) find(id string) (claim, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.byID[id]
	return found, ok
}

// make claims the series that are sound for the members that showed them.
func (c *claims) make(list []fresh) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range list {
		if f.fault == sound {
			c.byID[f.id] = claim{f.series, f.from}
			c.byMember[f.from] = append(c.byMember[f.from], f.id)
		}
	}
	c.used = true
}

// settle forgets the claims of members up to one that has been read.
func (c *claims) settle(last int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for m := range c.byMember {
		if m.order <= last {
			c.forget(m)
		}
	}
	if len(c.byMember) == 0 && c.used { // a map keeps the size that it had
		c.byID, c.byMember, c.used = map[string]claim{}, map[*member][]string{}, false
	}
}

// drop forgets the claims of a member.
func (c *claims) drop(m *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(m)
}

func (c *claims) forget(m *member) {
	for _, id := range c.byMember[m] {
		if c.byID[id].from == m {
			delete(c.byID, id)
		}
	}
	delete(c.byMember, m)
}
