package breaker

import "math/bits"

// rate is a share in parts of a billion. Counts are compared with it by whole
// numbers, so that 57 calls of 100 do reach 57 % and 49.6 % never pass for 50 %.
type rate int64

const whole rate = 1_000_000_000

// never is a rate that nothing reaches.
const never rate = -1

// rateOf rounds down, save for what a decimal fraction loses in binary: two calls
// of three reach 2.0/3, and 57 of 100 reach 0.57.
func rateOf(share float64) rate {
	if share < 0 {
		return never
	}
	return max(rate(share*float64(whole)+1e-6), 1)
}

// reached reports whether part of all is at least the rate.
func (r rate) reached(part, all int64) bool {
	if r < 0 || all <= 0 {
		return false
	}
	ph, pl := bits.Mul64(uint64(part), uint64(whole))
	ah, al := bits.Mul64(uint64(all), uint64(r))
	return ph > ah || ph == ah && pl >= al
}
