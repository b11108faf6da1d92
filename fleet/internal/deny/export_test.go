package deny

// Collide looks again, as if the key had the hash of the other's.
func (l *Lookup) Collide(other Lookup) {
	l.set, l.hash = other.set, other.hash
	l.find()
}
