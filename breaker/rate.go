package breaker

import "math/bits"

// rate is a share in parts of a billion. Comparing it with counts in whole numbers is exact: 57 of
// 100 calls reach 57 %, and 49.6 % never reaches 50 %.
type rate int64

const wholeRate rate = 1_000_000_000

// neverReached is a rate that no share reaches.
const neverReached rate = -1

// rateOf rounds down, but first adds a little, because a decimal fraction may become smaller in
// binary. So two of three calls reach 2.0/3, and 57 of 100 calls reach 0.57.
func rateOf(share float64) rate {
	if share < 0 {
		return neverReached
	}
	return max(rate(share*float64(wholeRate)+1e-6), 1)
}

// reached reports whether part is at least the rate of all. It is false if all is 0.
func (r rate) reached(part, all int64) bool {
	if r < 0 || all <= 0 {
		return false
	}
	partHigh, partLow := bits.Mul64(uint64(part), uint64(wholeRate))
	allHigh, allLow := bits.Mul64(uint64(all), uint64(r))
	return partHigh > allHigh || partHigh == allHigh && partLow >= allLow
}
