package instrument

import "github.com/weir-go/weir/stat"

const attrWindow = "weir.window.name"

// Instruments of windows that stand alone.
var (
	WindowEvents = &stat.Instrument{
		Name: "weir.window.events", Unit: "{event}", Kind: stat.Counter, Attrs: []string{attrWindow, "weir.window.outcome"},
		Help: "Events counted, by outcome.",
	}
	WindowEventsLate = &stat.Instrument{
		Name: "weir.window.events.late", Unit: "{event}", Kind: stat.Counter, Attrs: []string{attrWindow},
		Help: "Events that were older than the newest part of the window, and were counted into it.",
	}
	WindowErrorRatio = &stat.Instrument{
		Name: "weir.window.error_ratio", Unit: "1", Kind: stat.Gauge, Attrs: []string{attrWindow},
		Help: "Failures of the events in the window, where there are any.",
	}
	WindowSize = &stat.Instrument{
		Name: "weir.window.size", Unit: "{event}", Kind: stat.Gauge, Attrs: []string{attrWindow},
		Help: "Events in the window.",
	}
	WindowLength = &stat.Instrument{
		Name: "weir.window.length", Unit: "s", Kind: stat.Gauge, Attrs: []string{attrWindow},
		Help: "The length of the window.",
	}
	WindowCoverage = &stat.Instrument{
		Name: "weir.window.coverage", Unit: "1", Kind: stat.Gauge, Attrs: []string{attrWindow},
		Help: "The part of the window's length that has been seen so far.",
	}
	WindowFlushes = &stat.Instrument{
		Name: "weir.window.flushes", Unit: "{flush}", Kind: stat.Counter, Attrs: []string{attrWindow, "weir.window.outcome"},
		Help: "Exchanges of a window with its fleet, by outcome.",
	}
	WindowLag = &stat.Instrument{
		Name: "weir.window.lag", Unit: "s", Kind: stat.Gauge, Attrs: []string{attrWindow},
		Help: "How old what is known of the fleet is.",
	}
	WindowLatency = &stat.Instrument{
		Name: "weir.window.latency", Unit: "s", Kind: stat.Gauge, Attrs: []string{attrWindow, "weir.window.quantile"},
		Help: "Quantiles of how long the events in the window took.",
	}
)

// windows lists them in the order of docs/metrics.md.
var windows = []*stat.Instrument{WindowEvents, WindowEventsLate, WindowErrorRatio, WindowSize, WindowLength, WindowCoverage, WindowLatency, WindowFlushes, WindowLag}
