package recipes_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/dev/tests/recipes"
	"github.com/weir-go/weir/weirtest"
)

//readme:pagertest
func TestAnOutageOfPaymentsFires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var service weirtest.Service
		var alerts weirtest.Alerts
		payments := weir.New("payments", weir.Config{})
		go recipes.WatchPayments(payments, &alerts).Run(t.Context())

		callFor(t, payments, service.Call, time.Minute)
		alerts.Want(t, "payments fail")
		service.Always(weirtest.Answer{Err: weirtest.ErrDown})
		callFor(t, payments, service.Call, 2*time.Minute)
		alerts.Want(t, "payments fail", alert.Firing)
		service.Always(weirtest.Answer{})
		callFor(t, payments, service.Call, 10*time.Minute)
		alerts.Want(t, "payments fail", alert.Firing, alert.Resolved)
	})
}

//readme:end

//readme:callfor

// callFor makes ten calls per second.
func callFor(t *testing.T, gate *weir.Gate, call func(context.Context) error, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		_ = gate.Run(t.Context(), call)
	}
}

//readme:end

//readme:inbox

// inbox is the transport to receivers that accept everything.
type inbox struct {
	mu  sync.Mutex
	got map[string][]string // bodies by host and path
}

func (i *inbox) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.got[r.URL.Host+r.URL.Path] = append(i.got[r.URL.Host+r.URL.Path], string(body))
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, err
}

//readme:end

func TestAnAlertReachesSlackAndAlertmanager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		receivers := inbox{got: map[string][]string{}}
		payments := weir.New("payments", weir.Config{})
		to := recipes.Receivers("https://hooks.slack.example/services/x", "http://alertmanager:9093", &receivers)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- recipes.WatchPayments(payments, to...).Run(ctx) }()
		callFor(t, payments, func(context.Context) error { return weirtest.ErrDown }, time.Minute)
		stop()
		require.NoError(t, <-ended)

		messages := receivers.got["hooks.slack.example/services/x"]
		require.Len(t, messages, 1)
		require.Contains(t, messages[0], "[FIRING] payments fail")
		var posted []struct{ Labels map[string]string }
		require.NotEmpty(t, receivers.got["alertmanager:9093/api/v2/alerts"])
		require.NoError(t, json.Unmarshal([]byte(receivers.got["alertmanager:9093/api/v2/alerts"][0]), &posted))
		require.Equal(t, "payments fail", posted[0].Labels["alertname"])
		require.Equal(t, "page", posted[0].Labels["severity"])
	})
}

func TestATestMessageReachesSlack(t *testing.T) {
	receivers := inbox{got: map[string][]string{}}
	to := recipes.Receivers("https://hooks.slack.example/services/x", "http://alertmanager:9093", &receivers)
	require.NoError(t, recipes.WatchPayments(weir.New("payments", weir.Config{}), to...).Test(t.Context(), "slack"))
	require.NotEmpty(t, receivers.got["hooks.slack.example/services/x"])
	require.Contains(t, receivers.got["hooks.slack.example/services/x"][0], "weir test")
}
