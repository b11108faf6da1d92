package main

import (
	"fmt"
	"sync"
)

// faults collects faults: the first of each kind, and how many there were.
type faults struct {
	mu    sync.Mutex
	kinds []string
	first map[string]string
	count map[string]int
}

func (f *faults) add(kind, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count == nil {
		f.first, f.count = map[string]string{}, map[string]int{}
	}
	if f.count[kind]++; f.count[kind] == 1 {
		f.kinds = append(f.kinds, kind)
		f.first[kind] = fmt.Sprintf(format, args...)
	}
}

func (f *faults) list() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, kind := range f.kinds {
		all = append(all, fmt.Sprintf("%s (%d times): %s", kind, f.count[kind], f.first[kind]))
	}
	return all
}
