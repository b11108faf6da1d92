package deny

// Collide looks again, as if the key had the hash of the other's.
func (l *Look) Collide(other Look) {
	l.set, l.hash = other.set, other.hash
	l.find()
}
