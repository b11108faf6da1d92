package deny

// Collide repeats the lookup as if the key had the hash of the other key.
func (l *Lookup) Collide(other Lookup) {
	l.set, l.hash = other.set, other.hash
	l.find()
}
