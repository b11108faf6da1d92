package breaker_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/breaker/breakerlog"
)

// decodeLog decodes what a JSON handler wrote.
func decodeLog(t *testing.T, log *bytes.Buffer) (list []map[string]any) {
	t.Helper()
	for d := json.NewDecoder(log); d.More(); {
		var r map[string]any
		require.NoError(t, d.Decode(&r))
		list = append(list, r)
	}
	return list
}

func TestLogChangesWritesEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		b := breaker.New("payments", breaker.Config{FailureRun: breaker.Off, Recovery: breaker.Off, OnChange: breakerlog.Changes(slog.New(slog.NewJSONHandler(&log, nil)))})
		open(t, b)
		opened := time.Now()
		time.Sleep(6 * time.Second)
		run(t, b, 3, succeed)
		b.Force(breaker.ForcedOpen, "")
		b.Force(breaker.Shadow, "")
		run(t, b, 20, fail)

		type line struct{ level, msg, from, state, origin string }
		var got []line
		list := decodeLog(t, &log)
		for n, r := range list {
			require.Equal(t, "weir.breaker.transition", r["event.name"])
			require.Equal(t, "payments", r["weir.breaker.name"])
			require.EqualValues(t, n+1, r["weir.breaker.seq"])
			got = append(got, line{
				r["level"].(string), r["msg"].(string), r["weir.breaker.previous_state"].(string), r["weir.breaker.state"].(string), r["weir.breaker.origin"].(string),
			})
		}
		require.Equal(t, []line{
			{"WARN", "breaker open", "closed", "open", "calls"},
			{"INFO", "breaker half_open", "open", "half_open", "clock"},
			{"INFO", "breaker closed", "half_open", "closed", "calls"},
			{"WARN", "breaker forced_open", "closed", "forced_open", "hand"},
			{"INFO", "breaker shadow", "forced_open", "shadow", "hand"},
			{"WARN", "breaker would open", "shadow", "shadow", "calls"},
		}, got)
		require.Equal(t, "failure rate 100% of 20 calls, limit 50%", list[0]["weir.breaker.reason"])
		require.Equal(t, "the cooldown of 1s is over", list[1]["weir.breaker.reason"])
		require.EqualValues(t, 20, list[0]["weir.breaker.calls"])
		require.EqualValues(t, 20, list[0]["weir.breaker.failures"])
		at, err := time.Parse(time.RFC3339Nano, list[1]["weir.breaker.changed_at"].(string))
		require.NoError(t, err)
		require.True(t, at.Equal(opened.Add(time.Second)), "when it was due, not when it was noticed")
		require.NotContains(t, list[3], "weir.breaker.calls")
	})
}
