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
	source  stat.Source
	order   int // a later member has a greater one; 0 if it is not inserted
	removed atomic.Bool
}

// members are the sources of a set in the order of their addition. A list that was read never
// changes: new members are added behind its end, and removed members are marked, and dropped once
// they are half of the list. So adding and removing cost the same however many members there are.
type members struct {
	list     atomic.Pointer[[]*member]
	removals atomic.Int64 // how many there have been

	mu      sync.Mutex
	last    int                     // the order of the newest
	removed int                     // how many of the list are removed
	index   map[stat.Source]*member // members that can be found by ==
}

func newMembers() *members {
	m := &members{index: map[stat.Source]*member{}}
	m.list.Store(&[]*member{})
	return m
}

// missing returns new members for the sources that are not in the set, each once.
func (m *members) missing(sources []stat.Source) (list []*member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	seen := make(map[stat.Source]bool, len(sources))
	for _, s := range sources {
		if canBeFound(s) {
			if seen[s] || m.index[s] != nil {
				continue
			}
			seen[s] = true
		}
		list = append(list, &member{source: s})
	}
	return list
}

// number gives new members their order and returns them, without those whose source has got in the
// set meanwhile. These have the order 0.
func (m *members) number(list []*member) []*member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(list, func(one *member) bool {
		if one.order = 0; canBeFound(one.source) && m.index[one.source] != nil {
			return true
		}
		m.last++
		one.order = m.last
		return false
	})
}

// add adds members to the list of members that are read.
func (m *members) add(more []*member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range more {
		if canBeFound(one.source) {
			m.index[one.source] = one
		}
	}
	list := append(*m.list.Load(), more...)
	m.list.Store(&list)
}

// remove removes the member of a source and returns it, or nil if there is none.
func (m *members) remove(s stat.Source) *member {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !canBeFound(s) {
		return nil
	}
	one := m.index[s]
	if one == nil {
		return nil
	}
	delete(m.index, s)
	one.removed.Store(true)
	m.removals.Add(1)
	m.removed++
	if list := *m.list.Load(); 2*m.removed >= len(list) {
		list = slices.DeleteFunc(slices.Clone(list), func(one *member) bool { return one.removed.Load() })
		m.list.Store(&list)
		m.removed = 0
	}
	return one
}

// canBeFound reports whether the source can be found by ==, which panics for some types and is
// false for a value that holds a NaN.
func canBeFound(s stat.Source) bool {
	if s == nil || !reflect.ValueOf(s).Comparable() {
		return false
	}
	itself := s
	return s == itself
}
