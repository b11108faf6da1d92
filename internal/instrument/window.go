package instrument

const (
	windowName    = "weir.window.name"
	windowOutcome = "weir.window.outcome"
)

// Instruments of windows that do not belong to a breaker.
var (
	WindowEvents = counter("weir.window.events", "{event}",
		"Events counted, by outcome.", windowName, windowOutcome)
	WindowEventsLate = counter("weir.window.late_events", "{event}",
		"Events that came too late for their bucket. A window in the process counts them into its newest bucket; the window of a fleet leaves them out.", windowName)
	WindowErrorRatio = gauge("weir.window.error_ratio", "1",
		"Failed share of the events in the window. Absent without events.", windowName)
	WindowSize = gauge("weir.window.size", "{event}",
		"Events in the window.", windowName)
	WindowLength = gauge("weir.window.length", "s",
		"Length of the window.", windowName)
	WindowCoverage = gauge("weir.window.coverage", "1",
		"Share of the window's length that has passed since it was created.", windowName)
	WindowLatency = gauge("weir.window.latency", "s",
		"Quantiles of the duration of the events in the window.", windowName, "weir.window.quantile")
	WindowFlushes = counter("weir.window.flushes", "{flush}",
		"Exchanges of a window with the other processes of a fleet, by outcome.", windowName, windowOutcome)
	WindowLag = gauge("weir.window.lag", "s",
		"Age of the counts from the other processes of a fleet.", windowName)
)
