package limiter

// BusyKey is a key whose requests were refused. The method Busiest of a [Group], a weir.Group, a
// weirhttp.Limit or a fleet.Limiter returns it. Its counts are those of the last 5 to 10 minutes.
//
// The counts are bounds, because a limiter counts only as many keys as fit into 8 kB. If it has
// refused n requests in that time, the bounds of a key differ by at most n/32, and usually by
// n/128. Every key with more refusals than n/32 is counted.
type BusyKey struct {
	// Limiter is the name of the limiter or policy that has refused the key.
	Limiter string
	// Key is "#" and 12 hexadecimal digits of a hash of the key, or the first 64 bytes of the key
	// if ShowKeys is set. All limiters of a process have the same hash for equal keys of the same
	// type. The hash differs in each process, so that a key cannot be found by hashing all possible
	// ones.
	Key string
	// AtLeast and AtMost are bounds of how many requests of the key were refused, or would have
	// been refused without shadow mode.
	AtLeast, AtMost int64
}

// Busiest returns up to n of the keys that the group has refused most often, with the most refused
// key first. It returns none if the group has no name. Counting costs nothing for admitted
// requests.
func (g *Group[K]) Busiest(n int) []BusyKey {
	var keys []BusyKey
	for _, k := range g.busiest.Busiest(g.Name(), n) {
		keys = append(keys, BusyKey(k))
	}
	return keys
}
