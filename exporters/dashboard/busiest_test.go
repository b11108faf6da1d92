package dashboard_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/exporters/dashboard"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/weirhttp"
)

type busyRow struct {
	Key             string
	AtLeast, AtMost int64
}

// busiestOf returns the busiest keys that the page shows of a source.
func busiestOf(t *testing.T, page http.Handler, name string) []busyRow {
	t.Helper()
	for _, r := range getSnapshot(t, page).Rows {
		if r.Name != name {
			continue
		}
		var d struct{ Busiest []busyRow }
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/source.json?id="+r.ID, nil))
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &d))
		return d.Busiest
	}
	require.Fail(t, "no row "+name)
	return nil
}

func TestViewOfALimiterShowsItsBusiestKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		users := limiter.NewGroup(limiter.GroupConfig[string]{Name: "users", Rate: limiter.Per(1, time.Hour), Burst: 1, ShowKeys: true})
		hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{Gate: weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 1}})
		limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{
			{Name: "minute", Rate: limiter.Per(1, time.Hour), Burst: 1, By: weirhttp.ByIP, ShowKeys: true},
			{Name: "day", Limit: 1, Window: 24 * time.Hour, By: weirhttp.ByIP, ShowKeys: true},
		}})
		page := newDefaultPage(users, hosts, limit)
		require.Empty(t, busiestOf(t, page, "users"))
		for range 3 {
			users.Get("<b>alice</b>").Take(1)
			_, _ = hosts.Get("db").Allow(t.Context())
			limit.Handler(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		}
		time.Sleep(time.Second)
		getSnapshot(t, page)
		require.Equal(t, []busyRow{{"<b>alice</b>", 2, 2}}, busiestOf(t, page, "users"))
		require.Equal(t, []busyRow{{"192.0.2.1", 2, 2}}, busiestOf(t, page, "minute"))
		require.Equal(t, []busyRow{{"192.0.2.1", 2, 2}}, busiestOf(t, page, "day"))
		keys := busiestOf(t, page, "hosts")
		require.Len(t, keys, 1)
		require.Regexp(t, "^#[0-9a-f]{12}$", keys[0].Key)
	})
}

// busySource is a source that returns more keys than Busiest was asked for.
type busySource struct{ stat.Source }

func (busySource) Busiest(int) []limiter.BusyKey {
	keys := make([]limiter.BusyKey, 1000)
	for i := range keys {
		keys[i] = limiter.BusyKey{Limiter: "users", Key: "k", AtLeast: 1, AtMost: 1}
	}
	return keys
}

func TestPageShowsTenBusiestKeysOfALimiter(t *testing.T) {
	users := limiter.NewGroup(limiter.GroupConfig[string]{Name: "users", Rate: limiter.PerSecond(1)})
	source := busySource{users}
	page := newDefaultPage(source)
	require.Len(t, busiestOf(t, page, "users"), 10)
	dash, err := dashboard.New(dashboard.Config{}, source)
	require.NoError(t, err)
	dash.Remove(source)
	require.Empty(t, getSnapshot(t, dash).Rows)
}
