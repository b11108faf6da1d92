package dashboard_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/dashboard"
)

func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Sources that are added and removed while no page is open leave nothing behind.
func TestSourcesAddedAndRemovedUnseenLeaveNothing(t *testing.T) {
	page := newDefaultPage()
	before := heapInUse()
	for n := range 200 {
		b := breaker.New(fmt.Sprint(n, strings.Repeat("n", 100_000)), breaker.Config{Latency: true})
		runCalls(b, 1, 0)
		require.NoError(t, page.Add(b))
		page.Remove(b)
	}
	require.Less(t, heapInUse()-before, int64(5_000_000), "bytes left of 20 MB of names")
	runtime.KeepAlive(page)
}

// The keys come from requests and may have any length. Their rows and changes have a bounded size.
func TestLongKeysTakeLittleSpace(t *testing.T) {
	const series, key = 20, 1 << 20
	g := breaker.NewGroup[string]("tenants", breaker.GroupConfig{MaxSeries: series})
	page := newPage(dashboard.Config{Interval: 100 * time.Millisecond}, g)
	for n := range 2 * series {
		g.Get(fmt.Sprint(n, strings.Repeat("k", key)))
	}
	before := heapInUse()
	rows := getSnapshot(t, page).Rows
	require.LessOrEqual(t, len(rows), series+2, "the members with series, the others and the group")
	for _, r := range rows {
		require.LessOrEqual(t, len(r.Name), 256+len("…"))
	}
	require.Less(t, get(page, "/snapshot.json").Body.Len(), (series+2)*2000)
	require.Less(t, get(page, "/source.json?id="+rows[0].ID).Body.Len(), 40_000)
	require.Less(t, heapInUse()-before, int64((series+2)*40*4000))
	runtime.KeepAlive(page)
	runtime.KeepAlive(g)
}

// The page keeps no reference to a server that has ended, in whatever way.
func TestEndedServersAreForgotten(t *testing.T) {
	page := newDefaultPage()
	gone := func() weak.Pointer[http.Server] {
		server := httptest.NewServer(page)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
		require.NoError(t, err)
		response, err := server.Client().Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		server.Close()
		return weak.Make(server.Config)
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		return gone.Value() == nil
	}, time.Minute, time.Millisecond)
	runtime.KeepAlive(page)
}

func TestHistoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 100 * time.Millisecond
		page := newPage(dashboard.Config{Interval: interval, History: 10 * interval}, breaker.New("bank", breaker.Config{}))
		id := getSnapshot(t, page).Rows[0].ID
		for range 100 {
			time.Sleep(interval)
			getSnapshot(t, page)
		}
		var d struct{ History struct{ At []int64 } }
		require.NoError(t, json.Unmarshal(get(page, "/source.json?id="+id).Body.Bytes(), &d))
		require.Len(t, d.History.At, 11, "both ends")
	})
}
