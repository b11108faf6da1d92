package instrument

const (
	alertRule     = "weir.alert.rule"
	alertSeverity = "weir.alert.severity"
	alertState    = "weir.alert.state"
)

// Instruments of alert rules.
var (
	AlertState = upDown("weir.alert.state", "{alert}",
		"1 for the current state of the rule, 0 for the other states.", alertRule, alertSeverity, alertState)
	AlertTransitions = counter("weir.alert.transitions", "{transition}",
		"State transitions, by the state entered.", alertRule, alertSeverity, alertState)
	AlertValue = gauge("weir.alert.value", "",
		"Value at the last evaluation. Absent if there was none.", alertRule, alertSeverity)
	AlertEvaluations = counter("weir.alert.evaluations", "{evaluation}",
		"Evaluations of the rule, by kind of error if one failed.", alertRule, alertSeverity, "error.type")
	AlertEvaluationDuration = durations("weir.alert.evaluation.duration", // 8 µs to 16 s
		"Duration of evaluations of the rule.", -17, 4, alertRule, alertSeverity)
	AlertLastEvaluation = gauge("weir.alert.last_evaluation.timestamp", "s",
		"Unix time of the last evaluation.", alertRule, alertSeverity)
)
