package alert_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
)

// repeatingNotifier is a notifier with a Repeat.
type repeatingNotifier struct {
	*flakyNotifier
	every time.Duration
}

func (r *repeatingNotifier) Repeat() time.Duration { return r.every }

func TestAlertsAreRepeatedOnRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &repeatingNotifier{flakyNotifier: newFlakyNotifier(acceptDelivery), every: time.Minute}
		st := newSwitchedRules(t, r)
		st.setRule(0, true)
		time.Sleep(10*time.Minute + 30*s)
		require.InDelta(t, 11, len(r.lines()), 1, "while it fires")
		st.setRule(0, false)
		time.Sleep(time.Hour)
		resolved := 0
		for _, line := range r.lines() {
			if line == "r0 resolved" {
				resolved++
			}
		}
		require.InDelta(t, 15, resolved, 1, "for 15 minutes after it resolved")
		st.stop()
	})
}

// batchRecorder is a notifier that receives many alerts at once.
type batchRecorder struct {
	*flakyNotifier
	sizes []int
}

func (b *batchRecorder) NotifyAll(_ context.Context, alerts []alert.Alert) error {
	b.sizes = append(b.sizes, len(alerts))
	b.write(alerts...)
	return nil
}

func TestBatchNotifierGetsManyAlertsAtOnce(t *testing.T) {
	members := func(yield func(string, int) bool) {
		for i := range 150 {
			if !yield(fmt.Sprint(i), i) {
				return
			}
		}
	}
	b := &batchRecorder{flakyNotifier: newFlakyNotifier(acceptDelivery)}
	m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{b}}, alert.Rule{
		Name: "x", When: alert.Above(0),
		Value: alert.Each(members, func(int) alert.Value { return alert.Gauge(func() float64 { return 1 }) }),
	})
	m.Evaluate(time.Now())
	require.NoError(t, m.Flush(t.Context()))
	require.Equal(t, []int{64, 64, 22}, b.sizes)
	require.Len(t, b.lines(), 150)
	require.Zero(t, b.attempts.Load())
}
