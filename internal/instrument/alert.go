package instrument

import "github.com/weir-go/weir/stat"

const attrRule = "weir.alert.rule"

// Instruments of alert rules.
var (
	AlertState = &stat.Instrument{
		Name: "weir.alert.state", Unit: "{alert}", Kind: stat.UpDown, Attrs: []string{attrRule, "weir.alert.severity", "weir.alert.state"},
		Help: "1 for the state the rule is in, 0 for the others.",
	}
	AlertTransitions = &stat.Instrument{
		Name: "weir.alert.transitions", Unit: "{transition}", Kind: stat.Counter, Attrs: []string{attrRule, "weir.alert.severity", "weir.alert.state"},
		Help: "Transitions, by the state entered.",
	}
	AlertValue = &stat.Instrument{
		Name: "weir.alert.value", Kind: stat.Gauge, Attrs: []string{attrRule, "weir.alert.severity"},
		Help: "The value at the last evaluation, where there was one.",
	}
	AlertEvaluations = &stat.Instrument{
		Name: "weir.alert.evaluations", Unit: "{evaluation}", Kind: stat.Counter, Attrs: []string{attrRule, "weir.alert.severity", "error.type"},
		Help: "Evaluations of the rule, by the kind of error where there was one.",
	}
	AlertLastEvaluation = &stat.Instrument{
		Name: "weir.alert.last_evaluation.timestamp", Unit: "s", Kind: stat.Gauge, Attrs: []string{attrRule, "weir.alert.severity"},
		Help: "Unix time of the last evaluation.",
	}
	AlertEvaluationDuration = &stat.Instrument{
		Name: "weir.alert.evaluation.duration", Unit: "s", Kind: stat.Distribution, Attrs: []string{attrRule, "weir.alert.severity"},
		Help: "How long evaluations of the rule took.", Bounds: powersOfTwo(-17, 4), // 8 µs to 16 s
	}
)

// alerts lists them in the order of docs/metrics.md.
var alerts = []*stat.Instrument{AlertState, AlertTransitions, AlertValue, AlertEvaluations, AlertEvaluationDuration, AlertLastEvaluation}
