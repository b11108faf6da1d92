package sim

// random is a stream of numbers that depends only on its key: SplitMix64 of Steele, Lea and Flood,
// "Fast splittable pseudorandom number generators" (OOPSLA 2014). Each call and each attempt has
// its own, so that no call changes the numbers of another.
type random uint64

// randomFor returns the stream of a key.
func randomFor(key ...uint64) random {
	var r random
	for _, k := range key {
		r = random(mixBits(uint64(r) ^ mixBits(k+goldenStep)))
	}
	return r
}

const goldenStep = 0x9e3779b97f4a7c15

// next returns a number from 0 to 1, 1 excluded.
func (r *random) next() float64 {
	*r += goldenStep
	return float64(mixBits(uint64(*r))>>11) / (1 << 53)
}

func mixBits(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
