package alert_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
)

func TestNoDataTexts(t *testing.T) {
	for text, n := range map[string]alert.NoData{"": "", "keep-last": alert.KeepLast, "resolve": alert.Resolve, "fire": alert.Fire} {
		var config struct{ NoData alert.NoData }
		require.NoError(t, json.Unmarshal([]byte(`{"NoData": "`+text+`"}`), &config))
		require.Equal(t, n, config.NoData)
		written, err := json.Marshal(config)
		require.NoError(t, err)
		require.JSONEq(t, `{"NoData": "`+text+`"}`, string(written))
		rule := alert.Rule{Name: "x", Value: alert.Rate(&totals{}, s), When: alert.Above(0), NoData: n}
		require.NoError(t, alert.Config{}.Validate(rule))
	}
}

func FuzzNoDataText(f *testing.F) {
	for _, text := range []string{"", "keep-last", "resolve", "fire", "Fire", "fire\x00", "keep_last"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rule := alert.Rule{Name: "x", Value: alert.Rate(&totals{}, s), When: alert.Above(0), NoData: alert.NoData(text)}
		err := alert.Config{}.Validate(rule)
		if slices.Contains([]string{"", "keep-last", "resolve", "fire"}, text) {
			require.NoError(t, err)
			return
		}
		require.EqualError(t, err, fmt.Sprintf(`alert: rule "x": NoData is %.60q, must be "keep-last", "resolve" or "fire"`, text))
	})
}

func TestStateTexts(t *testing.T) {
	written, err := json.Marshal(alert.Alert{Rule: "x", State: alert.Firing})
	require.NoError(t, err)
	require.Contains(t, string(written), `"State":"firing"`)
	var read alert.Alert
	require.NoError(t, json.Unmarshal(written, &read))
	require.Equal(t, alert.Firing, read.State)
	require.Equal(t, "pending, firing, resolved", string(alert.Pending+", "+alert.Firing+", "+alert.Resolved))
}
