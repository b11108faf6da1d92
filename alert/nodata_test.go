package alert_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
)

func TestNoDataHasATextForm(t *testing.T) {
	for text, n := range map[string]alert.NoData{"keep-last": alert.KeepLast, "resolve": alert.Resolve, "fire": alert.Fire} {
		require.Equal(t, text, n.String())
		config := struct{ NoData alert.NoData }{alert.NoData(9)}
		require.NoError(t, json.Unmarshal([]byte(`{"NoData": "`+text+`"}`), &config))
		require.Equal(t, n, config.NoData)
		written, err := json.Marshal(config)
		require.NoError(t, err)
		require.JSONEq(t, `{"NoData": "`+text+`"}`, string(written))
	}
	n := alert.Fire
	require.EqualError(t, n.UnmarshalText([]byte("keep last")), `alert: NoData is "keep last", must be keep-last, resolve or fire`)
	require.Equal(t, alert.Fire, n, "it stays as it was")
	_, err := alert.NoData(3).MarshalText()
	require.EqualError(t, err, "alert: NoData is 3, must be KeepLast, Resolve or Fire")
	require.Equal(t, "no data 3", alert.NoData(3).String())
}

func FuzzNoDataText(f *testing.F) {
	for _, text := range []string{"", "keep-last", "resolve", "fire", "Fire", "fire\x00", "keep_last"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var n alert.NoData
		if n.UnmarshalText(text) != nil {
			return
		}
		written, err := n.MarshalText()
		require.NoError(t, err)
		require.Equal(t, text, written)
		var again alert.NoData
		require.NoError(t, again.UnmarshalText(written))
		require.Equal(t, n, again)
	})
}

func TestStatesAndFailuresAreTheirText(t *testing.T) {
	written, err := json.Marshal(alert.Alert{Rule: "x", State: alert.Firing})
	require.NoError(t, err)
	require.Contains(t, string(written), `"State":"firing"`)
	var read alert.Alert
	require.NoError(t, json.Unmarshal(written, &read))
	require.Equal(t, alert.Firing, read.State)
	require.Equal(t, "pending, firing, resolved", string(alert.Pending+", "+alert.Firing+", "+alert.Resolved))
}
