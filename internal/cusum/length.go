package cusum

import "math"

// Exponent returns by how much a failure raises a sum of log-likelihood ratios whose lower failure
// rate is p. A success lowers the sum by rate / (1 − rate) times as much. p must be above 0 and
// below rate. The result is the solution x > 0 of
//
//	p × exp(x) + (1 − p) × exp(−x × rate / (1 − rate)) = 1
func Exponent(p, rate float64) float64 {
	undone := rate / (1 - rate) // what a success takes away; +Inf at a rate of 1
	growth := func(x float64) float64 { return p*math.Exp(x) + (1-p)*math.Exp(-x*undone) }
	low, high := 0.0, -math.Log(p) // there the first term alone is 1
	for range 100 {
		if x := (low + high) / 2; growth(x) > 1 {
			high = x
		} else {
			low = x
		}
	}
	return low
}

// Least returns the lowest score that is reached once in n calls or less often, if a share p of the
// calls fails, by Lorden's bound.
func Least(n, p, rate float64) int64 { return int64(math.Ceil(math.Log(n) / Exponent(p, rate))) }

// Score returns the score of a run at a rate.
func Score(n Run, rate float64) float64 {
	if n.successes() == 0 {
		return float64(n.Failures())
	}
	return float64(n.Failures()) - float64(n.successes())*rate/(1-rate)
}
