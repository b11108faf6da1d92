// Package window counts what happened in the most recent span of time. Adding costs one clock
// reading and one atomic add. Reading costs one subtraction, however long the span is.
//
//	logins := window.NewCounter(window.Config{Span: time.Minute})
//	logins.Add(1)
//	fmt.Println(logins.Sum(), "in the last minute")
//
//	jobs := window.NewCalls(window.CallsConfig{Name: "jobs", Span: time.Minute, Slow: time.Second})
//	jobs.Record(window.Success, took)
//	fmt.Println(jobs.Counts().FailureRate(), jobs.Totals().Calls())
//
// There are three kinds of windows:
//
//   - [Counter] is a window over one number: the sum of what was added in the last span.
//   - [Calls] is a window over calls and their outcomes, with lifetime totals. A breaker uses such
//     a window to decide, and an exporter publishes one. Calls with a name are a [stat.Source].
//   - [View] is a window of any length over the lifetime totals of something else, which it
//     samples. An alert rule over five minutes or a day uses a View.
//
// # Config
//
//	Config   Default  Change it
//	Span     10s      to the span that you want to know about
//	Buckets  10       to 60 or more for a window that moves more smoothly
//	Edge     Recent   to Strict for a limit, to Interpolated for the best estimate
//
// The windows of [CallsConfig] have the same Span and Buckets.
//
// # How it works
//
// A window is a prefix sum. Totals only grow, and a ring remembers the totals at the beginning of
// each recent bucket. The sum over a span is the total now minus the total when the first bucket of
// the span began:
//
//	bucket     |  41  |  42  |  43  |  44  |  45     now
//	total when   100    130    130    170    180     195
//	it began            └───────── last 4 ────────┘  = 195 − 130 = 65
//
// # Guarantees
//
//   - A window is never cleared, a reading costs the same for any span, and lifetime totals come
//     for free.
//   - A window moves by whole buckets. [Edge] says which buckets a reading includes, and how far it
//     can be off the exact span. docs/accuracy.md has the bounds.
//   - Windows made with a constructor like [NewCounter] use the real, monotonic clock. Windows made
//     with one like [NewCounterAt] use the times given to their At methods, for replay and for
//     event time. Do not mix the two in one window.
//   - A time before the newest bucket counts as in that bucket, so a clock that goes back neither
//     loses nor repeats anything. If the first time given is earlier than the creation of the
//     window, the window begins at that time.
//   - A package variable can be used in bubbles of testing/synctest, in which the clock begins
//     anew. A window whose clock is another one than before starts again as new, but its totals
//     stay.
package window
