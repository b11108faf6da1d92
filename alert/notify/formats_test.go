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

func TestAlertmanagerAlerts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		am := notify.NewAlertmanager(notify.Config{URL: "http://am.example/prefix/", Transport: server.transport})
		require.NoError(t, notifyAll(t.Context(), am, []alert.Alert{firingAlert(), resolvedAlert()}))
		require.Equal(t, "/prefix/api/v2/alerts", server.requests()[0].path)
		var got []map[string]any
		require.NoError(t, json.Unmarshal(server.requests()[0].body, &got))
		require.Len(t, got, 2)
		require.Equal(t, map[string]any{"alertname": "errors", "severity": "page"}, got[0]["labels"])
		require.Equal(t, "2026-01-02T03:04:05Z", got[0]["startsAt"])
		end, err := time.Parse(time.RFC3339Nano, got[0]["endsAt"].(string))
		require.NoError(t, err)
		require.Equal(t, 4*time.Minute, time.Until(end), "four repeats from now")
		require.Equal(t, "2026-01-02T04:04:05Z", got[1]["endsAt"])

		off := notify.NewAlertmanager(notify.Config{URL: "http://am.example", Repeat: notify.Off, Transport: server.transport})
		require.NoError(t, off.Notify(t.Context(), firingAlert()))
		require.NotContains(t, string(server.requests()[1].body), "endsAt", "the Alertmanager decides")
		server.stop()
	})
}
