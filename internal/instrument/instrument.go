// Package instrument defines the instruments of the library: the name, kind, unit and attributes of
// each metric. docs/metrics.md lists them.
//
// They are all defined here, not next to the code that they measure, for two reasons. Several
// packages show the same metric, such as a limiter and a gate. And an exporter describes all of
// them before the first source exists.
package instrument

import "github.com/weir-go/weir/stat"

// All returns all instruments in a fixed order. The caller owns the slice but not the instruments.
// It names them one by one, so that a program which does not call it links only those that it uses.
func All() []*stat.Instrument {
	return []*stat.Instrument{
		AlertState, AlertTransitions, AlertValue, AlertNoData, AlertEvaluations,
		AlertEvaluationDuration, AlertLastEvaluation,
		BreakerState, BreakerTransitions, BreakerStateTime, BreakerCalls, BreakerSlowCalls,
		BreakerLateResults, BreakerAbandonedProbes, BreakerDroppedChanges,
		BreakerWindowFailureRatio, BreakerWindowSlowRatio, BreakerWindowCalls,
		BreakerThresholdFailureRatio, BreakerThresholdMinCalls, BreakerOpenRemaining,
		BreakerCallDuration, BreakerRefusalRatio, BreakerGroupMembers, BreakerGroupEvictions,
		BreakerGroupUnguarded, BreakerGroupPrevented,
		ConfigUpdates, ConfigRefused, ConfigApplied,
		ExporterSourcePanics, ExporterSkippedSamples,
		LimiterRequests, LimiterTokens, LimiterNear, LimiterWaiting, LimiterQueueFull,
		LimiterAvailable, LimiterLimit, InFlightCalls, InFlightLimit, InFlightBounding,
		GateHopelessCalls, RetryCalls, LimiterPeriod, LimiterKeys, LimiterNoRoom, LimiterEvictions,
		LimiterBackendErrors, LimiterWaitDuration,
		NotifierNotifications, NotifierAttempts, NotifierDeliveryDuration, NotifierPending,
		NotifierPendingLimit, NotifierLastSuccess,
		WindowEvents, WindowEventsLate, WindowErrorRatio, WindowSize, WindowLength,
		WindowCoverage, WindowLatency, WindowFlushes, WindowLag,
	}
}

// The functions that define instruments consist of one expression, and so do the definitions: the
// compiler then computes the instruments, and a program does not when it starts.

func counter(name, unit, help string, attrs ...string) *stat.Instrument {
	return &stat.Instrument{Kind: stat.Counter, Name: name, Unit: unit, Help: help, Attrs: attrs}
}

func upDown(name, unit, help string, attrs ...string) *stat.Instrument {
	return &stat.Instrument{Kind: stat.UpDown, Name: name, Unit: unit, Help: help, Attrs: attrs}
}

func gauge(name, unit, help string, attrs ...string) *stat.Instrument {
	return &stat.Instrument{Kind: stat.Gauge, Name: name, Unit: unit, Help: help, Attrs: attrs}
}

// durations defines a distribution of seconds.
func durations(name, help string, bounds []float64, attrs ...string) *stat.Instrument {
	return &stat.Instrument{Kind: stat.Distribution, Name: name, Unit: "s", Help: help, Bounds: bounds, Attrs: attrs}
}

// Bounds of distributions, in seconds.
var (
	// From 122 µs to 64 s.
	callBounds = []float64{
		0x1p-13, 0x1p-12, 0x1p-11, 0x1p-10, 0x1p-9, 0x1p-8, 0x1p-7, 0x1p-6, 0x1p-5, 0x1p-4,
		0x1p-3, 0x1p-2, 0x1p-1, 0x1p0, 0x1p1, 0x1p2, 0x1p3, 0x1p4, 0x1p5, 0x1p6,
	}
	// From 1 ms to 64 s.
	deliveryBounds = []float64{
		0x1p-10, 0x1p-9, 0x1p-8, 0x1p-7, 0x1p-6, 0x1p-5, 0x1p-4, 0x1p-3, 0x1p-2, 0x1p-1, 0x1p0,
		0x1p1, 0x1p2, 0x1p3, 0x1p4, 0x1p5, 0x1p6,
	}
	// From 8 µs to 16 s.
	evaluationBounds = []float64{
		0x1p-17, 0x1p-16, 0x1p-15, 0x1p-14, 0x1p-13, 0x1p-12, 0x1p-11, 0x1p-10, 0x1p-9, 0x1p-8,
		0x1p-7, 0x1p-6, 0x1p-5, 0x1p-4, 0x1p-3, 0x1p-2, 0x1p-1, 0x1p0, 0x1p1, 0x1p2, 0x1p3,
		0x1p4,
	}
)
