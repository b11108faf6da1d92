package main

import (
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// pace returns the length of a run that all durations are derived from. A real service would use tens of
// seconds and minutes. Here a whole outage must fit into a few seconds.
func pace(run time.Duration) time.Duration { return min(max(run, time.Second), time.Minute) }

// ordersPerSecond is the limit: above the usual demand, and below the demand of the rush.
const ordersPerSecond = 250

// failureLimit is the share of failed calls at which the breaker opens.
const failureLimit = 0.3

func gateConfig(run time.Duration, onChange func(breaker.Change)) weir.Config {
	return weir.Config{
		Rate: limiter.PerSecond(ordersPerSecond), Burst: ordersPerSecond / 10,
		Breaker: breaker.Config{
			FailureRate: failureLimit,
			Window:      pace(run) / 10,
			Cooldown:    pace(run) / 20,
			Recovery:    pace(run) / 40,
			Latency:     true,
			OnChange:    onChange,
		},
	}
}

// tooMany is the share of failed payments above which the alert fires.
const tooMany = 0.2

func alertRule(run time.Duration, payments alert.Counted) alert.Rule {
	return alert.Rule{
		Name:     "payments fail",
		Value:    alert.FailureRate(payments, pace(run)/10),
		When:     alert.Above(tooMany),
		Resolve:  alert.Below(tooMany / 2),
		MinCalls: 10,
		For:      pace(run) / 20,
	}
}

func alertConfig(run time.Duration, tell alert.Notifier) alert.Config {
	return alert.Config{Interval: pace(run) / 50, Notify: []alert.Notifier{tell}}
}

// deadline returns the longest time that a payment may take.
func deadline(run time.Duration) time.Duration { return min(pace(run)/25, 200*time.Millisecond) }

// exportEvery returns the interval of the exports through OpenTelemetry.
func exportEvery(run time.Duration) time.Duration { return pace(run) / 10 }
