package fleet

import "github.com/weir-go/weir/stat"

type callsSeries struct {
	events                                  [4]*stat.Series // success, failure, ignored, refused
	late, ratio, size, length, answer, fail *stat.Series
	lag                                     *stat.Series
}

func newCallsSeries(name string) callsSeries {
	s := callsSeries{
		late: windowEventsLate.Series(name), ratio: windowErrorRatio.Series(name),
		size: windowSize.Series(name), length: windowLength.Series(name),
		answer: windowFlushes.Series(name, "success"), fail: windowFlushes.Series(name, "failure"), lag: windowLag.Series(name),
	}
	for i, outcome := range [4]string{"success", "failure", "ignored", "refused"} {
		s.events[i] = windowEvents.Series(name, outcome)
	}
	return s
}

// Observe yields the figures of the window: see [stat.Source]. Events are this node's, so
// that those of all nodes add up; size and ratio are the fleet's. The ratio of no
// calls is left out.
func (c *Calls) Observe(yield func(*stat.Series, float64) bool) {
	o := c.current.Load()
	c.mu.Lock()
	late, flushes, failed, lag := c.state.late, c.flushes, c.failed, c.now()-c.answeredAt
	c.mu.Unlock()
	own, now := o.ownCalls(), o.windowAt(c.now()).windowCounts()
	for i, n := range [4]int64{own[0], own[1], own[4], own[5]} {
		if !yield(c.series.events[i], float64(n)) {
			return
		}
	}
	_ = yield(c.series.late, float64(late)) &&
		yield(c.series.size, float64(now.Calls())) &&
		(now.Calls() == 0 || yield(c.series.ratio, now.FailureRate())) &&
		yield(c.series.length, c.config.Span.Seconds()) &&
		yield(c.series.answer, float64(flushes)) &&
		yield(c.series.fail, float64(failed)) &&
		yield(c.series.lag, lag.Seconds())
}
