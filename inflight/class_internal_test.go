package inflight

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// serveOne serves a tenant.
func (b *backlog) serveOne(now time.Duration) (tenant string) {
	w, _ := b.next(now)
	b.serve(w, now)
	return w.caller.Tenant
}

func (b *backlog) serveMany(n int) map[string]int {
	got := map[string]int{}
	for range n {
		got[b.serveOne(0)]++
	}
	return got
}

func (b *backlog) joinMany(n int, tenant string) {
	for range n {
		b.join(&waiter{caller: Caller{Tenant: tenant}})
	}
}

// Tenants with long names, each of which is served once, come while others wait.
func TestTenantsThatDoNotWaitNeedBoundedMemory(t *testing.T) {
	var b backlog
	b.joinMany(10_000, "waits")
	used := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := used()
	for i := range 5000 {
		b.joinMany(1, strings.Repeat("x", 10_000)+strconv.Itoa(i))
		for b.length > 10_000 {
			b.serveOne(0)
		}
	}
	require.Less(t, int64(used())-int64(before), int64(300_000), "bytes for at most 1,000 tenants")
	c := b.classes[Normal.class()]
	require.Equal(t, maxAhead, c.ahead.Len())
	require.Zero(t, len(c.tenants)-c.ahead.Len()-c.turns.Len(), "tenants in no heap")
}

// The ones with the least to wait for are forgotten.
func TestTheTenantsThatAreFurthestAheadAreRemembered(t *testing.T) {
	b := backlog{config: Queue{TenantWeight: func(name string) float64 { return map[string]float64{"light": 1e-3}[name] }}}
	b.joinMany(10, "waits")
	b.joinMany(1, "light")
	b.serveMany(2)
	for i := range 2 * maxAhead {
		b.joinMany(1, strconv.Itoa(i))
		for b.length > 9 {
			b.serveOne(0)
		}
	}
	b.joinMany(1, "light")
	b.joinMany(990, "waits")
	require.Zero(t, b.serveMany(500)["light"])
}

func TestTurnsAreForgottenWhenNobodyHasWaitedForASecond(t *testing.T) {
	for idle, want := range map[time.Duration]string{999 * ms: "b", time.Second: "a", -time.Hour: "a"} {
		var b backlog
		const now = time.Hour + time.Minute
		b.join(&waiter{caller: Caller{Tenant: "a"}, since: now})
		require.Equal(t, "a", b.serveOne(now))
		for _, tenant := range []string{"a", "b"} {
			b.join(&waiter{caller: Caller{Tenant: tenant}, since: now + idle})
		}
		require.Equal(t, want, b.serveOne(now+idle), "idle for %v", idle)
	}
}

// A light tenant has had so many slots that a heavy one could not be told from a heavier one.
func TestWeightsMatterHoweverManySlotsWereServed(t *testing.T) {
	b := backlog{config: Queue{
		Shares:       map[Priority]float64{Low: 1e-6, Normal: 1e6, Critical: 5e5},
		TenantWeight: func(name string) float64 { return map[string]float64{"light": 1e-6, "heavy": 1e6, "half": 5e5}[name] },
	}}
	for range 100_000 {
		b.joinMany(1, "light")
		b.join(&waiter{caller: Caller{Priority: Low}})
		b.serveOne(0)
		b.serveOne(0)
	}
	b.joinMany(1, "light") // so that the passes are kept
	b.joinMany(600, "heavy")
	b.joinMany(600, "half")
	for range 600 {
		b.join(&waiter{caller: Caller{Priority: Critical}})
	}
	got := b.serveMany(900)
	require.InDelta(t, 400, got["heavy"], 5, "%v", got)
	require.InDelta(t, 200, got["half"], 5, "%v", got)
	require.InDelta(t, 300, got[""], 5, "%v", got)
}

// The lock of the queue is held while the caller that has to leave is found.
func TestAFullQueueRefusesAsFastWithManyTenants(t *testing.T) {
	took := func(tenants int) time.Duration {
		var b backlog
		for i := range tenants {
			b.joinMany(2, strconv.Itoa(i))
		}
		best := time.Hour
		for range 20 {
			began := time.Now()
			for range 50 {
				require.Nil(t, b.victim(Caller{Tenant: "0"}, 1, 0))
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	few, many := took(1), took(50_000)
	require.Less(t, many, 50*few, "%v with one tenant, %v with 50,000", few, many)
}
