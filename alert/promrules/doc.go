// Package promrules writes alert rules for a Prometheus server, over the metrics that weir exports.
// The server can judge a whole fleet, and can report a process that no longer raises its own
// alerts.
//
//	burn, err := promrules.BurnRate("payments", 0.999)
//	if err != nil {
//		return err
//	}
//	health, err := promrules.Health(promrules.HealthConfig{Scrape: 15 * time.Second})
//	if err != nil {
//		return err
//	}
//	err = promrules.Write(file, map[string][]promrules.Rule{"payments": burn, "weir": health})
//
// BurnRate returns the two rules of alert.BurnRateRules, with the same names. They judge a job and
// not a process, so their alerts have other labels, and Alertmanager has both. It notifies of both
// together if it groups by alertname. BurnRate also returns two slower rules, whose spans are
// longer than a process usually lives. If history is missing, the rules of the server assume that
// there were no calls. The rules of a process do not.
package promrules
