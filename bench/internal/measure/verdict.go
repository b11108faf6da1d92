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
	case ratio.Lo <= bound:
		return Close
	}
	return Missed
}
