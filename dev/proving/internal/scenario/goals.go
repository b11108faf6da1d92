package scenario

import "math"

// forBothConfigs applies a goal to weir.Config{} too, in addition to the recommended gate.
func forBothConfigs(g Goal) Goal {
	g.Recommended = false
	return g
}

// atMost bounds a figure by a number.
func atMost(text string, c Column, bound float64) Goal {
	return Goal{Text: text, Recommended: true, Figure: c, Bound: func(Rows) float64 { return bound }}
}

// atLeast is like atMost, but for a figure that is better when it is larger.
func atLeast(text string, c Column, bound float64) Goal {
	c.More = true
	return atMost(text, c, bound)
}

// timesBest bounds a figure by a multiple of the best figure of the peers and of a run without a
// guard.
func timesBest(text string, c Column, factor float64) Goal {
	return Goal{Text: text, Recommended: true, Figure: c, Bound: func(rs Rows) float64 {
		return orNoBound(factor*rs.best(c), c)
	}}
}

// timesBestPeer bounds a figure by a multiple of the best peer's. Without a peer there is no bound.
func timesBestPeer(text string, c Column, factor float64) Goal {
	return Goal{Text: text, Recommended: true, Figure: c, Bound: func(rs Rows) float64 {
		return orNoBound(factor*rs.bestPeer(c), c)
	}}
}

// orNoBound returns bound, or, if bound is NaN, a bound that every figure reaches.
func orNoBound(bound float64, c Column) float64 {
	switch {
	case !math.IsNaN(bound):
		return bound
	case c.More:
		return math.Inf(-1)
	}
	return math.Inf(1)
}

// The goals of lost capacity and of a return bind fleets too.

func lostCapacityGoals() []Goal {
	return []Goal{
		timesBest("good calls meanwhile ≥ 95 % of the best", goodMeanwhile, 0.95),
		timesBestPeer("failures seen ≤ 1.1 × the best peer's", failed, 1.1),
	}
}

func comeBackGoals() []Goal {
	return []Goal{
		{
			Text: "good calls meanwhile ≥ 70 % of what is possible", Recommended: true, Figure: goodMeanwhile,
			Bound: func(rs Rows) float64 { return orNoBound(0.7*rs.median(oracle, goodMeanwhile), goodMeanwhile) },
		},
		timesBestPeer("failures seen ≤ the best peer's", failed, 1),
		atMost("at most 2 openings meanwhile", reopenings, 2),
	}
}
