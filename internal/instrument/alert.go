package instrument

const (
	alertRule     = "weir.alert.rule"
	alertSeverity = "weir.alert.severity"
	alertState    = "weir.alert.state"
)

// Instruments of alert rules.
var (
	AlertState = upDown("weir.alert.state", "{alert}",
		"Alerts of the rule in each state. A rule over a group has one alert per member.", alertRule, alertSeverity, alertState)
	AlertTransitions = counter("weir.alert.transitions", "{transition}",
		"State transitions, by the state entered.", alertRule, alertSeverity, alertState)
	AlertValue = gauge("weir.alert.value", "",
		"Value at the last evaluation. Absent if there was none.", alertRule, alertSeverity)
	AlertNoData = upDown("weir.alert.no_data", "{alert}",
		"Alerts for which the last evaluation had no data, by the reason.", alertRule, alertSeverity, "weir.alert.reason")
	AlertEvaluations = counter("weir.alert.evaluations", "{evaluation}",
		"Evaluations of the rule, by kind of error if one failed.", alertRule, alertSeverity, "error.type")
	AlertEvaluationDuration = durations("weir.alert.evaluation.duration",
		"Duration of evaluations of the rule.", evaluationBounds, alertRule, alertSeverity)
	AlertLastEvaluation = gauge("weir.alert.last_evaluation.timestamp", "s",
		"Unix time of the last evaluation.", alertRule, alertSeverity)
)
