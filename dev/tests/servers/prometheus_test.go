package servers_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/window"
)

// TestPrometheusHasTheCountsOfTheProgram lets two real servers scrape a whole run, one of them with
// native histograms, and compares their values with the counts of the program.
func TestPrometheusHasTheCountsOfTheProgram(t *testing.T) {
	s := newProgram()
	address := s.serve(t)
	classic := startPrometheus(t, address)
	native := startPrometheus(t, address, "--enable-feature=native-histograms")
	s.run(t)
	for name, p := range map[string]*prometheusServer{"classic": classic, "native": native} {
		t.Run(name, func(t *testing.T) {
			p.t = t
			p.awaitScrape()
			compareCounts(t, s, p)
			compareStates(t, s, p)
		})
	}
	t.Run("quantiles", func(t *testing.T) {
		l := s.payments.Breaker().LifetimeLatency()
		classic.t, native.t = t, t
		compareQuantiles(t, &l, classic, native)
	})
	t.Run("rules and dashboard", func(t *testing.T) {
		s.payments.Breaker().OpenFor(time.Hour)
		for range 20 {
			require.Error(t, s.payments.Run(t.Context(), func(context.Context) error { return nil }))
		}
		s.monitor.Evaluate(time.Now())
		s.monitor.Evaluate(time.Now().Add(time.Second)) // so that the alert fires
		for p, other := range map[*prometheusServer]string{classic: "Duration of calls, native", native: "Duration of calls"} {
			p.t = t
			p.awaitScrape()
			require.Equal(t, 1.0, p.singleValue(`weir_breaker_state{weir_breaker_state="open"}`))
			require.InDelta(t, 3600, p.singleValue(`weir_breaker_open_remaining_seconds`), 30)
			checkRules(t, p)
			// The gate has no bound on calls in flight and no SlowCall, and there
			// is no group.
			require.ElementsMatch(t, []string{
				other, "Slow ratio of the window", "Calls in flight", "Share of the bound in use", "Hopeless calls",
				"Openings prevented in groups", "Members of groups", "Calls that a full group did not guard",
			}, emptyPanels(t, p))
		}
	})
}

func compareCounts(t *testing.T, s *program, p *prometheusServer) {
	t.Helper()
	n, a := s.payments.Totals(), s.payments.Stats()
	require.Equal(t, map[string]float64{
		"success": float64(n.Successes), "failure": float64(n.Failures), "ignored": float64(n.Ignored), "refused": float64(n.Refused),
	}, p.valuesBy("weir_breaker_outcome", `weir_breaker_calls_total{weir_breaker_name="payments"}`))
	require.Equal(t, map[string]float64{
		"allowed": float64(a.Allowed), "waited": float64(a.Waited), "refused": float64(a.Refused), "cancelled": float64(a.Cancelled),
	}, p.valuesBy("weir_limiter_outcome", `weir_limiter_requests_total{weir_limiter_name="payments"}`))
	require.Zero(t, p.singleValue(`sum(weir_exporter_source_panics_total) + sum(weir_exporter_skipped_samples_total)`))
}

func compareStates(t *testing.T, s *program, p *prometheusServer) {
	t.Helper()
	transitions := p.valuesBy("weir_breaker_state", `weir_breaker_transitions_total`)
	require.EqualValues(t, s.opened.Load(), transitions["open"])
	require.EqualValues(t, s.closed.Load(), transitions["closed"])
	require.EqualValues(t, s.fired.Load(), p.singleValue(`weir_alert_transitions_total{weir_alert_state="firing"}`))

	now := p.valuesBy("weir_breaker_state", `weir_breaker_state`)
	require.Len(t, now, 8)
	for state, is := range now {
		require.Equal(t, state == string(s.payments.Breaker().State()), is == 1, state)
	}
	for state, was := range p.valuesBy("weir_breaker_state", `max_over_time(weir_breaker_state[5m])`) {
		require.LessOrEqual(t, was, transitions[state]+now[state], "the breaker was never in state %s", state)
	}
	require.Empty(t, p.query(`max_over_time((sum(weir_breaker_state) != 1)[5m:100ms])`), "the breaker is in exactly one state at any time")
	spent := p.singleValue(`sum(weir_breaker_state_time_seconds_total)`)
	require.InDelta(t, time.Since(s.start).Seconds(), spent, 5)
}

// bucketOf returns the bounds of the bucket that contains the quantile.
func bucketOf(l *window.Latency, q float64) (lower, upper time.Duration) {
	rank, below := int64(math.Ceil(q*float64(l.Count()))), int64(0)
	h := l.Histogram()
	end := func(bucket int) time.Duration {
		return time.Duration(math.Exp2(float64(bucket)/math.Exp2(float64(h.Schema))) * 1e9)
	}
	for i, n := range h.Counts {
		if below += n; below >= rank {
			return end(h.Offset + i - 1), end(h.Offset + i)
		}
	}
	return 0, 0
}

// compareQuantiles compares each quantile that Prometheus computes with the bounds of the bucket
// that holds this quantile in the program. A classic bucket reaches from one power of two to the
// next.
func compareQuantiles(t *testing.T, l *window.Latency, classic, native *prometheusServer) {
	t.Helper()
	const name = `weir_breaker_call_duration_seconds`
	require.EqualValues(t, l.Count(), classic.singleValue(name+`_count`))
	require.EqualValues(t, l.Count(), native.singleValue(`histogram_count(`+name+`)`))
	require.InDelta(t, l.Sum, classic.singleValue(name+`_sum`), 1e-9)
	require.InDelta(t, l.Sum, native.singleValue(`histogram_sum(`+name+`)`), 1e-9)
	for _, q := range []float64{0.1, 0.5, 0.9, 0.99, 0.999} {
		lower, upper := bucketOf(l, q)
		quantile := `histogram_quantile(` + strconv.FormatFloat(q, 'g', -1, 64) + `, ` + name
		got := native.singleValue(quantile + `)`)
		require.GreaterOrEqual(t, got, lower.Seconds()*(1-1e-6), "%v", q)
		require.LessOrEqual(t, got, upper.Seconds()*(1+1e-6), "%v", q)

		got = classic.singleValue(quantile + `_bucket)`)
		require.GreaterOrEqual(t, got, math.Exp2(math.Floor(math.Log2(lower.Seconds())+1e-6))*(1-1e-6), "%v", q)
		require.LessOrEqual(t, got, math.Exp2(math.Ceil(math.Log2(upper.Seconds())-1e-6))*(1+1e-6), "%v", q)
	}
	require.Empty(t, native.query(name+`_bucket`), "a server that ingests native histograms ingests no classic ones")
}

func checkRules(t *testing.T, p *prometheusServer) {
	t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	require.Eventually(t, func() bool {
		p.get("/api/v1/rules", nil, &data)
		return len(data.Groups) == 1 && data.Groups[0].Rules[0].Health != "unknown"
	}, 30*time.Second, 50*time.Millisecond, "no rule was evaluated")
	require.Len(t, data.Groups[0].Rules, 13)
	for _, r := range data.Groups[0].Rules {
		require.Equal(t, "ok", r.Health, "%s: %s", r.Name, r.LastError)
	}
}

// emptyPanels runs the queries of each panel of the dashboard, and returns the panels without a
// result.
func emptyPanels(t *testing.T, p *prometheusServer) (empty []string) {
	t.Helper()
	text, err := os.ReadFile("../../../exporters/prom/mixin/dashboard.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	variables := strings.NewReplacer("$job", "program", "$breaker", ".*", "$key", ".*", "$limiter", "pay.*", "$__rate_interval", "1m")
	for _, panel := range dashboard.Panels {
		answers := 0
		for _, target := range panel.Targets {
			answers += len(p.query(variables.Replace(target.Expr)))
		}
		if answers == 0 && len(panel.Targets) > 0 {
			empty = append(empty, panel.Title)
		}
	}
	return empty
}
