package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/internal/instrument"
)

const (
	sickBegins = 20 * time.Minute
	sickEnds   = 50 * time.Minute
	jobsEnd    = 90 * time.Minute
)

// sick returns 1 while job A is sick, and 0 otherwise.
func sick(at time.Duration) float64 {
	if at >= sickBegins && at < sickEnds {
		return 1
	}
	return 0
}

// sickFor returns for how many seconds job A has been sick.
func sickFor(at time.Duration) float64 {
	return min(max(at-sickBegins, 0), sickEnds-sickBegins).Seconds()
}

func seconds(rate float64) func(time.Duration) float64 {
	return func(at time.Duration) float64 { return rate * at.Seconds() }
}

func constant(value float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return value }
}

// jobSeries are the series of two jobs, whose objects have equal names.
type jobSeries map[string]struct {
	a, b func(at time.Duration) float64
}

// sickJobs has the series with which each rule fires for job A alone.
var sickJobs = map[string]jobSeries{
	"BreakerOpen": {
		`weir_breaker_state{%s,weir_breaker_name="x",weir_breaker_state="open"}`:               {sick, constant(0)},
		`weir_breaker_transitions_total{%s,weir_breaker_name="x",weir_breaker_state="closed"}`: {constant(0), constant(7)},
	},
	"BreakerGroupOpen": {
		`weir_breaker_state{%s,weir_breaker_name="x",weir_group_key="k",weir_breaker_state="open"}`:               {sick, constant(0)},
		`weir_breaker_transitions_total{%s,weir_breaker_name="x",weir_group_key="k",weir_breaker_state="closed"}`: {constant(0), constant(7)},
	},
	"BreakerFlapping": {
		`weir_breaker_transitions_total{%s,weir_breaker_name="x",weir_breaker_state="closed"}`: {
			func(at time.Duration) float64 { return float64(int(sickFor(at) / 150)) }, constant(7),
		},
	},
	"BreakerRefusing": {
		`weir_breaker_calls_total{%s,weir_breaker_name="x",weir_breaker_outcome="refused"}`: {sickFor, constant(7)},
		`weir_breaker_calls_total{%s,weir_breaker_name="x",weir_breaker_outcome="success"}`: {seconds(1), seconds(1000)},
	},
	"BreakerGroupFull": {`weir_breaker_group_unguarded_total{%s,weir_breaker_name="x"}`: {sickFor, constant(7)}},
	"LimiterSaturated": {
		`weir_limiter_requests_total{%s,weir_limiter_name="x",weir_limiter_outcome="refused"}`: {sickFor, constant(7)},
		`weir_limiter_requests_total{%s,weir_limiter_name="x",weir_limiter_outcome="allowed"}`: {seconds(1), seconds(1000)},
	},
	"NotifierFailing": {
		`weir_notifier_pending{%s,weir_notifier_name="x"}`: {
			func(at time.Duration) float64 {
				if at >= 30*time.Minute && at <= 31*time.Minute {
					return 0 // the process restarts
				}
				return sick(at)
			}, constant(0),
		},
		`weir_notifier_notifications_total{%s,weir_notifier_name="x",weir_notifier_outcome="delivered"}`: {constant(3), seconds(1)},
	},
	"NotifierDropping": {
		`weir_notifier_notifications_total{%s,weir_notifier_name="x",weir_notifier_outcome="dropped"}`: {
			func(at time.Duration) float64 { return float64(int(sickFor(at) / 300)) }, constant(7),
		},
		`weir_notifier_notifications_total{%s,weir_notifier_name="x",weir_notifier_outcome="delivered"}`: {constant(3), seconds(1)},
	},
	"MonitorStalled": {
		`weir_alert_last_evaluation_timestamp_seconds{%s,weir_alert_rule="x"}`: {
			func(at time.Duration) float64 {
				if sick(at) > 0 {
					at = sickBegins
				}
				return at.Seconds()
			}, seconds(1),
		},
	},
	"RuleFailing": {
		`weir_alert_evaluations_total{%s,weir_alert_rule="x",error_type="too_many_members"}`: {sickFor, constant(7)},
		`weir_alert_evaluations_total{%s,weir_alert_rule="x",error_type=""}`:                 {seconds(1), seconds(1)},
	},
	"MetricsIncomplete": {
		`weir_exporter_source_panics_total{%s}`:                                    {sickFor, constant(7)},
		`weir_exporter_skipped_samples_total{%s,weir_exporter_reason="duplicate"}`: {sickFor, constant(7)},
	},
	"LimiterFull":   {`weir_limiter_no_room_total{%s,weir_limiter_name="x"}`: {sickFor, constant(7)}},
	"ConfigRefused": {`weir_config_refused{%s,weir_config_file="x"}`: {sick, constant(0)}},
}

// Two jobs have objects with the same names, and one of them is sick for half an hour. Each rule
// fires once for that job and resolves once, whatever the healthy job does.
func TestHealthyJobHidesNoSickOne(t *testing.T) {
	for _, scrape := range []time.Duration{15 * time.Second, time.Minute} {
		health := healthRules(intervals{evaluation: 5 * time.Second, scrape: scrape})
		require.Len(t, sickJobs, len(health), "each rule has a case")
		dir := writeRules(t, health)
		for rule, all := range sickJobs {
			var input []series
			for name, of := range all {
				input = append(input, jobValues(name, "A", scrape, jobsEnd, of.a), jobValues(name, "B", scrape, jobsEnd, of.b))
			}
			t.Run(fmt.Sprint(rule, " ", scrape), func(t *testing.T) {
				checkOneAlert(t, dir, "job", scrape, jobsEnd, input, []string{rule + " A"}, sickEnds-time.Minute)
			})
		}
	}
}

// An objective is one of all processes of a job, so that a process with few calls does not page by
// chance. A healthy job with a breaker of the same name hides nothing, though it has more calls.
func TestHealthyJobHidesNoSpentErrorBudget(t *testing.T) {
	const end = 8 * time.Hour // the longest of the short spans is 6h
	group, err := burnRateRules("payments", 0.999)
	require.NoError(t, err)
	dir := writeRules(t, group)
	for _, scrape := range []time.Duration{15 * time.Second, time.Minute} {
		t.Run(scrape.String(), func(t *testing.T) {
			var input []series
			for outcome, of := range map[string][2]func(time.Duration) float64{
				"failure": {sickFor, constant(7)}, "success": {seconds(1), seconds(1000)},
			} {
				name := `weir_breaker_calls_total{%s,weir_breaker_name="payments",weir_breaker_outcome="` + outcome + `"}`
				input = append(input, jobValues(name, "A", scrape, end, of[0]), jobValues(name, "B", scrape, end, of[1]))
			}
			want := []string{"payments burn 14.4x A", "payments burn 1x A", "payments burn 3x A", "payments burn 6x A"}
			checkOneAlert(t, dir, "job", scrape, end, input, want, sickEnds-time.Minute)
		})
	}
}

func jobValues(name, job string, scrape, end time.Duration, value func(time.Duration) float64) series {
	var values []string
	for at := time.Duration(0); at <= end; at += scrape {
		values = append(values, strconv.FormatFloat(value(at), 'g', -1, 64))
	}
	return series{fmt.Sprintf(name, `job="`+job+`",instance="`+job+`:1"`), strings.Join(values, " ")}
}

// checkOneAlert checks that each of the alerts begins once, fires at a time, and no longer fires at
// the end.
func checkOneAlert(t *testing.T, dir, label string, scrape, end time.Duration, input []series, want []string, fires time.Duration) {
	t.Helper()
	every := 15 * time.Second
	if end > jobsEnd {
		every = time.Minute // enough for rules with longer spans
	}
	firing := `count by (alertname, ` + label + `) (ALERTS{alertstate="firing"}%s)`
	starts := fmt.Sprintf(`count_over_time((%s unless %s)[%s:%s])`,
		fmt.Sprintf(firing, ""), fmt.Sprintf(firing, " offset "+every.String()), end, every)
	promtoolTest(t, dir, label, scrape, every, input, []expectation{
		{sickBegins - time.Minute, fmt.Sprintf(firing, ""), nil},
		{fires, fmt.Sprintf(firing, ""), want},
		{end, fmt.Sprintf(firing, ""), nil},
		{end, starts, want},
	})
}

// Receivers are out of order in different ways, for half an hour, and meanwhile alerts fire and
// resolve. Each notifier pages once, until all is delivered. A slow receiver does not page.
func TestOutageOfAReceiverPagesOnce(t *testing.T) {
	down := map[string]func(ctx context.Context) error{
		"asks":        func(context.Context) error { return &alert.DeliveryError{Kind: "http_5xx", Pause: 25 * time.Minute} },
		"revoked":     func(context.Context) error { return &alert.DeliveryError{Kind: "http_4xx", Refused: true} },
		"unreachable": func(context.Context) error { return &alert.DeliveryError{Kind: "unreachable"} },
		"hangs":       func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"panics":      func(context.Context) error { panic("down") },
	}
	recorded := recordNotifiers(t, down)
	want := []string{"NotifierFailing asks", "NotifierFailing hangs", "NotifierFailing panics", "NotifierFailing revoked", "NotifierFailing unreachable"}
	for _, scrape := range []time.Duration{15 * time.Second, time.Minute} {
		t.Run(scrape.String(), func(t *testing.T) {
			health := healthRules(intervals{evaluation: 5 * time.Second, scrape: scrape})
			var input []series
			for name, values := range recorded {
				var seen []string
				for at := 7 * time.Second; at < jobsEnd; at += scrape {
					seen = append(seen, values[at/time.Second])
				}
				input = append(input, series{name, strings.Join(seen, " ")})
			}
			checkOneAlert(t, writeRules(t, health), "weir_notifier_name", scrape, jobsEnd, input, want, sickEnds-time.Minute)
		})
	}
}

// recordNotifiers returns the value of each series of the notifiers at each second, in virtual
// time. The monitor of job B has notifiers with the same names, which work.
func recordNotifiers(t *testing.T, down map[string]func(context.Context) error) map[string][]string {
	values := map[string][]string{}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		outage := func() bool { return sick(time.Since(start)) > 0 }
		monitor := func(works bool) *alert.Monitor {
			c := alert.Config{Logger: slog.New(slog.DiscardHandler), Instance: "-"}
			for name, fail := range down {
				c.Notify = append(c.Notify, alert.Func(name, func(ctx context.Context, _ alert.Alert) error {
					if !works && outage() {
						return fail(ctx)
					}
					return nil
				}))
			}
			c.Notify = append(c.Notify, alert.Func("slow", func(context.Context, alert.Alert) error {
				time.Sleep(9 * time.Second)
				return nil
			}))
			var rules []alert.Rule
			for i := range 5 {
				bad := func() bool { return int(time.Since(start)/(5*time.Minute))%(i+2) == 1 }
				rules = append(rules, alert.Rule{Name: fmt.Sprint("r", i), Value: alert.Bool(bad), When: alert.Above(0)})
			}
			return alert.NewMonitor(c, rules...)
		}
		ctx, cancel := context.WithCancel(t.Context())
		a, b := monitor(false), monitor(true)
		go func() { _ = a.Run(ctx) }()
		go func() { _ = b.Run(ctx) }()
		for second := range int(jobsEnd / time.Second) {
			time.Sleep(time.Until(start.Add(time.Duration(second)*time.Second + time.Second/2)))
			recordMonitor(values, "A", a)
			recordMonitor(values, "B", b)
		}
		cancel()
	})
	return values
}

func recordMonitor(values map[string][]string, job string, m *alert.Monitor) {
	for s, v := range m.Observe {
		if s.Instrument == instrument.NotifierPending || s.Instrument == instrument.NotifierNotifications && s.Values[1] != "dropped" {
			name := strings.Replace(seriesText(s), "{", `{job="`+job+`",instance="`+job+`:1",`, 1)
			values[name] = append(values[name], strconv.FormatFloat(v, 'g', -1, 64))
		}
	}
}
