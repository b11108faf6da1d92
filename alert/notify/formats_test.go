package notify_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
)

func TestSlackMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		slack := notify.NewSlack(notify.Config{URL: "http://slack.example/services/x", Transport: server.transport})
		require.NoError(t, slack.Notify(t.Context(), firing()))
		require.NoError(t, slack.Notify(t.Context(), resolved()))
		require.JSONEq(t, `{"text": "[FIRING] errors", "attachments": [{
			"color": "danger", "text": "failure rate is &lt;0.4&gt; &amp; rising", "ts": 1767323045,
			"fields": [{"title": "severity", "value": "page", "short": true}]}]}`, string(server.requests()[0].body))
		require.Contains(t, string(server.requests()[1].body), `"text":"[RESOLVED] errors"`)
		require.Contains(t, string(server.requests()[1].body), `"color":"good"`)
		require.Contains(t, string(server.requests()[1].body), `"ts":1767326645`)
		server.stop()
	})
}

func TestAlertmanagerAlerts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		am := notify.NewAlertmanager(notify.Config{URL: "http://am.example/prefix/", Transport: server.transport})
		require.NoError(t, am.NotifyAll(t.Context(), []alert.Alert{firing(), resolved()}))
		require.Equal(t, "/prefix/api/v2/alerts", server.requests()[0].path)
		var got []map[string]any
		require.NoError(t, json.Unmarshal(server.requests()[0].body, &got))
		require.Len(t, got, 2)
		require.Equal(t, map[string]any{"alertname": "errors", "severity": "page"}, got[0]["labels"])
		require.Equal(t, "2026-01-02T03:04:05Z", got[0]["startsAt"])
		end, err := time.Parse(time.RFC3339Nano, got[0]["endsAt"].(string))
		require.NoError(t, err)
		require.Equal(t, 4*time.Minute, time.Until(end), "four repeats ahead")
		require.Equal(t, "2026-01-02T04:04:05Z", got[1]["endsAt"])

		off := notify.NewAlertmanager(notify.Config{URL: "http://am.example", Repeat: notify.Off, Transport: server.transport})
		require.NoError(t, off.Notify(t.Context(), firing()))
		require.NotContains(t, string(server.requests()[1].body), "endsAt", "left to the Alertmanager")
		server.stop()
	})
}
