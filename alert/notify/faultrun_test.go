package notify_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
	"github.com/weir-go/weir/internal/instrument"
)

// receiverFaults are ways in which a receiver fails.
var receiverFaults = []http.HandlerFunc{neverAnswer, dropConnection, answerStatus(500), answerStatus(503, "Retry-After", "30"), answerStatus(429, "Retry-After", "45")}

// receiverAtRandom returns works, or a way to fail.
func receiverAtRandom(random *rand.Rand, works http.HandlerFunc) http.HandlerFunc {
	if random.IntN(2) == 0 {
		return receiverFaults[random.IntN(len(receiverFaults))]
	}
	return works
}

// rulesForConditions returns a rule for each condition.
func rulesForConditions(conditions []atomic.Bool) (rules []alert.Rule) {
	for i := range conditions {
		rules = append(rules, alert.Rule{Name: fmt.Sprint("rule", i), Value: alert.Bool(conditions[i].Load), When: alert.Above(0)})
	}
	return rules
}

// For twelve hours twenty rules fire and resolve, and half of the time the receiver fails in a
// random way. At the end the receiver knows the latest state of each alert that it ever received,
// and it knows each alert that is firing.
func TestRandomFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(3, 5))
		server := newServer()
		hook := notify.NewWebhook(notify.Config{Name: "run", URL: "http://a.example", Transport: server.transport, Repeat: notify.Off})
		var bad [20]atomic.Bool
		rules := rulesForConditions(bad[:])
		monitor := alert.NewMonitor(alert.Config{Interval: 15 * time.Second, Notify: []alert.Notifier{hook}, Logger: discardLogger()}, rules...)
		ctx, cancel := context.WithCancel(t.Context())
		go monitor.Run(ctx)

		var acknowledged statusReceiver
		for range 12 * 60 {
			server.answer.Store(receiverAtRandom(random, acknowledged.accept))
			bad[random.IntN(len(bad))].Store(random.IntN(2) == 0)
			time.Sleep(time.Minute)
		}
		server.answer.Store(http.HandlerFunc(acknowledged.accept))
		time.Sleep(5 * time.Minute)

		metric := map[string]float64{}
		for s, v := range monitor.Observe {
			metric[s.ID()] += v
		}
		lost, raised := 0, 0.0
		for i := range bad {
			want := map[bool]string{true: "firing", false: "resolved"}[bad[i].Load()]
			got, heard := acknowledged.latest(fmt.Sprint("rule", i))
			if got != want && (heard || want == "firing") {
				lost++
			}
			raised += metric[instrument.AlertTransitions.Series(fmt.Sprint("rule", i), "", "firing").ID()]
		}
		notifications := func(outcome string) float64 {
			return metric[instrument.NotifierNotifications.Series("run", outcome, "").ID()]
		}
		t.Logf("alerts raised %v, deliveries tried %v, delivered %v, superseded %v, lost %d", raised,
			metric[instrument.NotifierAttempts.Series("run").ID()], notifications("delivered"), notifications("superseded"), lost)
		require.Zero(t, lost)
		require.Greater(t, raised, 100.0)
		require.Zero(t, metric[instrument.NotifierPending.Series("run").ID()])
		require.Zero(t, acknowledged.stale, "no state arrives after a newer one")
		cancel()
		synctest.Wait()
		server.stop()
	})
}

func answerStatus(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
	}
}
