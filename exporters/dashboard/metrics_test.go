package dashboard_test

import (
	"encoding/json"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// seriesValues is a source whose series have the values given.
type seriesValues map[*stat.Series]float64

func (s *seriesValues) Observe(yield func(*stat.Series, float64) bool) {
	for series, value := range *s {
		if !yield(series, value) {
			return
		}
	}
}

// object is JSON of the page.
type object = map[string]any

// Each number of the page is that of its instrument, and the outcomes count where they belong.
func TestEachNumberIsThatOfItsInstrument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &seriesValues{}
		add := func(value float64, i *stat.Instrument, values ...string) {
			(*source)[i.Series(values...)] = value
		}
		add(1, instrument.BreakerState, "gate", "open", "")
		add(30, instrument.BreakerOpenRemaining, "gate", "")
		add(0.75, instrument.BreakerThresholdFailureRatio, "gate", "")
		add(16, instrument.BreakerWindowCalls, "gate", "success", "")
		add(4, instrument.BreakerWindowCalls, "gate", "failure", "")
		add(7, instrument.LimiterWaiting, "gate")
		add(11, instrument.LimiterAvailable, "gate")
		add(13, instrument.LimiterLimit, "gate")
		add(17, instrument.LimiterPeriod, "gate")
		add(19, instrument.InFlightCalls, "gate")
		add(23, instrument.InFlightLimit, "gate")
		add(29, instrument.AlertValue, "rule", "page")
		add(946684860, instrument.AlertLastEvaluation, "rule", "page")
		add(100, instrument.AlertEvaluations, "rule", "page", "")
		add(31, instrument.AlertEvaluations, "rule", "page", "panic")
		add(6, instrument.AlertEvaluations, "rule", "page", "timeout")
		add(41, instrument.AlertState, "rule", "page", "pending")
		add(43, instrument.AlertState, "rule", "page", "firing")
		add(47, instrument.NotifierNotifications, "chat", "delivered", "")
		add(50, instrument.NotifierNotifications, "chat", "failed", "timeout")
		add(3, instrument.NotifierNotifications, "chat", "failed", "http_5xx")
		add(59, instrument.NotifierNotifications, "chat", "dropped", "")
		add(61, instrument.NotifierPending, "chat")
		add(946684867, instrument.NotifierLastSuccess, "chat")
		counts := seriesValues{}
		for n, outcome := range []string{"success", "ignored", "failure", "refused"} {
			counts[instrument.BreakerCalls.Series("gate", outcome, "")] = []float64{1, 2, 4, 8}[n]
		}
		for n, outcome := range []string{"allowed", "waited", "shadowed", "refused", "cancelled"} {
			value := []float64{1, 2, 4, 16, 32}[n]
			counts[instrument.LimiterRequests.Series("gate", outcome)] = value
			counts[instrument.LimiterRequests.Series("limiter", outcome)] = value
		}
		for series := range counts {
			(*source)[series] = 0
		}
		page := newDefaultPage(source)
		getSnapshot(t, page)
		maps.Copy(*source, counts)
		time.Sleep(time.Second)

		var s struct{ Rows, Alerts, Notifiers []object }
		require.NoError(t, json.Unmarshal(get(page, "/snapshot.json").Body.Bytes(), &s))
		has := func(got, want object) {
			t.Helper()
			for key, value := range want {
				require.Equal(t, value, got[key], key)
			}
		}
		has(s.Rows[0], object{
			"name": "gate", "kind": "gate", "state": "open", "threshold": 0.75, "failureRate": 0.2, "rate": 7.0, "refused": 24.0,
			"callRates": []any{3.0, 28.0}, "trouble": "limited", "limit": 13.0, "period": 17.0,
		})
		has(s.Rows[1], object{"name": "limiter", "kind": "limiter", "rate": 7.0, "refused": 16.0, "callRates": []any{7.0, 16.0}})
		has(s.Alerts[0], object{
			"name": "rule", "severity": "page", "value": 29.0, "evaluated": 946684860000.0, "failed": 37.0, "pending": 41.0, "firing": 43.0,
		})
		has(s.Notifiers[0], object{
			"name": "chat", "delivered": 47.0, "failed": 53.0, "dropped": 59.0, "pending": 61.0, "last": 946684867000.0,
		})
		var d object
		require.NoError(t, json.Unmarshal(get(page, "/source.json?id="+s.Rows[0]["id"].(string)).Body.Bytes(), &d))
		has(d, object{"reopens": 30.0, "waiting": 7.0, "available": 11.0, "limit": 13.0, "inFlight": 19.0, "maxFlight": 23.0})
	})
}
