// Package mixin has no code: it is the folder of what goes into other programs over
// the metrics of weir, with the tests that both are right.
//
//	alerts.yml       rules for Prometheus: what promrules.Health writes, for monitors that evaluate every 5 seconds
//	alerts_test.yml  their tests: promtool test rules alerts_test.yml
//	dashboard.json   a dashboard for Grafana, to be imported
//
// BreakerOpen, BreakerFlapping, BreakerRejecting, LimiterSaturated, NotifierFailing
// and AlertEngineStalled look after all that a program has. Rules for the error budget
// of one service, and for other intervals, are written by the package promrules.
package mixin
