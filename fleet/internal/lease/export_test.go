package lease

// Keys is how many keys are known.
func Keys(p *Purse) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.keys)
}
