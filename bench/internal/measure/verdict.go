package measure

// Verdict says whether a ratio keeps to its bound.
type Verdict string

// The verdicts.
const (
	NoBound   Verdict = ""             // there is none: the figure is for information
	Reached   Verdict = "reached"      // the median is within the bound
	Close     Verdict = "within noise" // the median is not, but the bound lies within the noise
	Missed    Verdict = "MISSED"       // and it does not
	NotJudged Verdict = "not judged"   // the machine had not two cores to spare
	Beyond    Verdict = "beyond reach" // the machine's share of ours alone is more than the bound
)

// How far apart the ratios of two sides that have not changed may lie from one build or hour to the next, whatever the
// noise within one run: where the code happens to lie in memory matters that much, and on two threads, which of them
// gets the word that they share. Of 14 runs in an hour the most that a serial row moved was 4 %, and one on two threads 20 %.
const (
	Drift       = 0.05
	SharedDrift = 0.2
)

// Judge compares the ratio with the bound, where 0 is none.
func (c Comparison) Judge(bound float64) Verdict {
	ratio := SpreadOf(c.Ratio)
	switch {
	case bound == 0:
		return NoBound
	case SpreadOf(c.Canary).Median > CanaryLimit:
		return NotJudged
	case ratio.Median <= bound:
		return Reached
	case SpreadOf(c.Least).Median > bound:
		return Beyond
	case min(ratio.Lo, ratio.Median/(1+c.drift())) <= bound:
		return Close
	}
	return Missed
}

func (c Comparison) drift() float64 {
	if len(c.Canary) > 0 {
		return SharedDrift
	}
	return Drift
}
