package fleet

import "github.com/weir-go/weir/stat"

type callsSeries struct {
	events                             [4]*stat.Series // success, failure, ignored, refused
	late, ratio, size, length          *stat.Series
	flushSuccesses, flushFailures, lag *stat.Series
}

func newCallsSeries(name string) callsSeries {
	s := callsSeries{
		late: windowEventsLate.Series(name), ratio: windowErrorRatio.Series(name),
		size: windowSize.Series(name), length: windowLength.Series(name),
		flushSuccesses: windowFlushes.Series(name, "success"), flushFailures: windowFlushes.Series(name, "failure"),
		lag: windowLag.Series(name),
	}
	for i, outcome := range [4]string{"success", "failure", "ignored", "refused"} {
		s.events[i] = windowEvents.Series(name, outcome)
	}
	return s
}

// Observe yields the metrics of the window: see [stat.Source]. The events are those of this node
// only, so that the sum over all nodes counts each event once. Size and error ratio are those of
// the fleet. There is no error ratio if there are no calls.
func (c *Calls) Observe(yield func(*stat.Series, float64) bool) {
	s, now := c.latest()
	c.mu.Lock()
	late, flushes, failed, lag := c.state.late, c.flushes, c.failed, max(now-c.answeredAt, 0)
	c.mu.Unlock()
	own, fleet := s.ownCalls(), s.windowAt(now).windowCounts()
	for i, n := range [4]int64{own[0], own[1], own[4], own[5]} {
		if !yield(c.series.events[i], float64(n)) {
			return
		}
	}
	_ = yield(c.series.late, float64(late)) &&
		yield(c.series.size, float64(fleet.Calls())) &&
		(fleet.Calls() == 0 || yield(c.series.ratio, fleet.FailureRate())) &&
		yield(c.series.length, c.config.Span.Seconds()) &&
		yield(c.series.flushSuccesses, float64(flushes)) &&
		yield(c.series.flushFailures, float64(failed)) &&
		yield(c.series.lag, lag.Seconds())
}
