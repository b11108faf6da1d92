package lease

// Keys returns how many keys are known.
func Keys(p *Pool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.leases)
}
