// Package promrules writes alert rules for a Prometheus server, over the metrics that weir exports.
// They judge a whole fleet where its metrics are, and tell of a process that cannot raise its own
// alerts any more.
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
// BurnRate has the two rules of alert.BurnRateRules, with the same names and labels, so that an
// Alertmanager takes the alerts of the processes and of the server for one alert. It has two slower
// rules besides, whose spans are too long for the memory of a process. Unlike the rules in a process,
// those of the server take missing history for no calls.
package promrules
