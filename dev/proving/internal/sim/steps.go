package sim

import "time"

// step holds the events of a tenth of a second.
type step struct{ offered, sent, good int }

// stepLength is the resolution of UntilProtected and UntilBack.
const stepLength = time.Second / 10

// steps are counts since a moment, per tenth of a second.
type steps []step

// at returns the counts at a time since the moment. Counts before the moment are in no step.
func (s *steps) at(t time.Duration) *step {
	if t < 0 {
		return new(step)
	}
	i := int(t / stepLength)
	for len(*s) <= i {
		*s = append(*s, step{})
	}
	return &(*s)[i]
}

// firstSecond returns the start of the first second that is found good, ends within the span and
// has a call, or -1 if there is none.
func (s *steps) firstSecond(span time.Duration, good func(step) bool) time.Duration {
	const perSecond = int(time.Second / stepLength)
	for i := range *s {
		from := time.Duration(i) * stepLength
		if from+time.Second > span {
			break
		}
		var sum step
		for _, p := range (*s)[i:min(i+perSecond, len(*s))] {
			sum.offered += p.offered
			sum.sent += p.sent
			sum.good += p.good
		}
		if sum.offered > 0 && good(sum) {
			return from
		}
	}
	return -1
}
