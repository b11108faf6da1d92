package dashboard_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/dashboard"
)

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Sources that come and go while nobody looks leave nothing behind.
func TestSourcesThatComeAndGoUnseenLeaveNothing(t *testing.T) {
	page := dashboard.Handler()
	before := heap()
	for n := range 200 {
		b := breaker.New(fmt.Sprint(n, strings.Repeat("n", 100_000)), breaker.Config{Latency: true})
		run(b, 1, 0)
		require.NoError(t, page.Add(b))
		page.Remove(b)
	}
	require.Less(t, heap()-before, int64(5_000_000), "of 20 MB of names")
	runtime.KeepAlive(page)
}

// Keys that a stranger chooses, at any length, have rows and changes of a bounded size.
func TestLongKeysTakeLittleOfThePage(t *testing.T) {
	const series, key = 20, 1 << 20
	g := breaker.NewGroup[string]("tenants", breaker.GroupConfig{MaxSeries: series})
	page := dashboard.New(dashboard.Config{Interval: 100 * time.Millisecond}, g)
	for n := range 2 * series {
		g.Get(fmt.Sprint(n, strings.Repeat("k", key)))
	}
	before := heap()
	rows := snap(t, page).Rows
	require.LessOrEqual(t, len(rows), series+2, "the members with series of their own, the others, and the group")
	for _, r := range rows {
		require.LessOrEqual(t, len(r.Name), 256+len("…"))
	}
	require.Less(t, get(page, "/snapshot.json").Body.Len(), (series+2)*2000)
	require.Less(t, get(page, "/source.json?id="+rows[0].ID).Body.Len(), 40_000)
	require.Less(t, heap()-before, int64((series+2)*40*4000))
	runtime.KeepAlive(page)
	runtime.KeepAlive(g)
}
