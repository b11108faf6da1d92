package busy

import "hash/maphash"

// Turn makes the present period the previous one.
func (s *Sketch[K]) Turn() {
	for i := range s.parts {
		p := &s.parts[i]
		p.mu.Lock()
		p.beginPeriod(p.period + 1)
		p.period--
		p.mu.Unlock()
	}
}

// AddLate is Add by a goroutine that read the clock so many periods ago.
func (s *Sketch[K]) AddLate(key K, periods int64) {
	hash := maphash.Comparable(seed, key)
	s.parts[hash%parts].insert(hash, s.period()-periods, textOf(key))
}
