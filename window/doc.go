// Package window counts what happened in the last span of time. Adding costs one reading of the
// clock and one atomic add; reading costs one subtraction.
//
//		logins := window.NewCounter(window.Config{Span: time.Minute})
//		logins.Add(1)
//		fmt.Println(logins.Sum(), "in the last minute")
//
//		jobs := window.NewCalls(window.CallsConfig{Name: "jobs", Span: time.Minute, Slow: time.Second})
//		jobs.Record(window.Success, took)
//		fmt.Println(jobs.Counts().FailureRate(), jobs.Totals().Calls())
//
//	  - [Counter] is a window over one sum: how many, or how much, in the last span.
//	  - [Calls] is a window over the outcomes of calls, with lifetime totals: what a
//	    breaker judges and an exporter publishes. One with a name is a [stat.Source].
//	  - [View] is a window of any length over the lifetime totals of something else, fed by
//	    sampling: what an alert rule over five minutes or a day looks at.
//
// A window is a prefix sum. Totals only grow, and a ring remembers what they were
// when each recent bucket began; the sum over a span is the total now less the
// total when the span's first bucket began:
//
//	bucket     |  41  |  42  |  43  |  44  |  45     now
//	total when   100    130    130    170    180     195
//	it began            └───────── last 4 ────────┘  = 195 − 130 = 65
//
// So a window is never cleared, sums cost the same for any span, lifetime totals
// come free, and a reader that wants to judge from a later moment keeps the totals
// of that moment as its baseline.
//
// A window moves by whole buckets. Which edge a reading takes, and how far it can
// be off the true span, is said at [Edge].
//
// Windows made with New… live on the real, monotonic clock; those made with New…At
// live on the times given to their At verbs, for replay and event time. One window
// lives on one or the other. A time that lies before the newest bucket counts into
// that bucket: a clock that goes back neither loses nor revives anything. A window begins
// with the first time at which something is counted if that lies before the one at which it
// was made: so a variable of a package works in a testing/synctest bubble, whose clock begins
// in the year 2000. It works in the first such bubble that uses it: in the next one all times
// are older than its newest.
package window
