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

// SharedDrift is how far apart the ratios on two threads may lie from one run to the next, whatever the noise within one:
// it depends on which of the threads gets the word that they share. In eight runs of a day that of "limiter: allowed"
// lay between 0.50 and 0.65. Serial ratios are held to the noise that is measured in the run.
const SharedDrift = 0.2

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
	case ratio.Lo <= bound || len(c.Canary) > 0 && ratio.Median <= bound*(1+SharedDrift):
		return Close
	}
	return Missed
}
