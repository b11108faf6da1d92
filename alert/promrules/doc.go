// Package promrules writes alert rules for a Prometheus server, over the metrics that
// weir exports: for those who judge a whole fleet where its metrics are, or want an
// alert about a process that cannot raise its own any more.
//
//	burn, err := promrules.BurnRate("payments", 0.999)
//	if err != nil {
//		return err
//	}
//	health, err := promrules.Health(promrules.HealthConfig{Scrape: 15 * time.Second})
//	if err != nil {
//		return err
//	}
//	err = promrules.Write(file, burn, health)
//
// BurnRate has the two rules of alert.BurnRateRules, by the same names and with the same
// labels, so that an Alertmanager takes what the processes and the server raise for
// one alert; and two slower ones, whose spans are too long for the memory of a
// process. Unlike those in the process, they take history that is missing for none.
package promrules
