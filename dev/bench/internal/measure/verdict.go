package measure

// Verdict is the result of comparing a ratio with its bound.
type Verdict string

// The verdicts.
const (
	NoBound   Verdict = ""             // the row is for information only
	Reached   Verdict = "reached"      // the median is within the bound
	Close     Verdict = "within noise" // the median is above the bound by less than the noise
	Missed    Verdict = "MISSED"       // the median is above the bound by more than the noise
	NotJudged Verdict = "not judged"   // the machine had no two free cores
)

// SharedDrift is how far the ratios on two threads may differ between runs, whatever the noise
// within one run. They depend on which thread gets the shared word. In eight runs on one day the
// ratio of "limiter: allowed" was between 0.50 and 0.65. Serial ratios are judged by the noise
// measured in the run.
const SharedDrift = 0.2

// Judge compares the ratio with the bound. A bound of 0 means no bound.
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
