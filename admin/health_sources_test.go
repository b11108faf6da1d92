package admin_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/admin"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/stat"
)

// changingSource is a source whose sources change, as those of a weirconfig.Set.
type changingSource struct{ sources *[]stat.Source }

func (changingSource) Observe(func(*stat.Series, float64) bool) {}
func (s changingSource) Sources() []stat.Source {
	if *s.sources == nil {
		panic("no sources")
	}
	return append(*s.sources, s)
}

func TestSourcesOfASetMayChange(t *testing.T) {
	before, after := weir.New("before", weir.Config{}), weir.New("after", weir.Config{})
	sources := []stat.Source{before}
	k := newHandlerTest(t, changingSource{&sources}, before)
	h := newHealth(t, admin.HealthConfig{NotReady: []string{"before"}}, changingSource{&sources})
	require.Len(t, k.send("GET", "/objects", "").Objects, 1, "a source that is given twice is one object")
	before.Breaker().OpenFor(time.Hour)
	status, _ := getHealth(t, h, "/ready")
	require.Equal(t, 503, status)

	sources = []stat.Source{after}
	status, got := getHealth(t, h, "/details")
	require.Equal(t, 200, status)
	require.True(t, got.Ready, "the gate is no more")
	require.Equal(t, "after", got.Objects[0].Name)
	k.sendAction("drain", "name=after", "")
	require.Equal(t, breaker.ForcedOpen, after.Breaker().State())

	sources = nil
	require.Equal(t, "before", k.send("GET", "/objects", "").Objects[0].Name, "a set that panics hides no other source")
}

// The program stays ready during an override of a whole group, of a link, or of a gate that is not
// named.
func TestOnlyNamedGatesMatterToReadiness(t *testing.T) {
	hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{})
	l, database := newLink(), weir.New("database", weir.Config{})
	h := newHealth(t, admin.HealthConfig{NotReady: []string{"database"}}, hosts, l, database)
	k := newHandlerTest(t, hosts, l, database)
	k.sendAction("force", "name=hosts&all=true", `{"state":"open"}`)
	k.sendAction("force", "name=x&all=true", `{"state":"open"}`)
	status, _ := getHealth(t, h, "/ready")
	require.Equal(t, 200, status)
	_, got := getHealth(t, h, "/details")
	require.Equal(t, "forced_open", got.Objects[0].State)
	require.Equal(t, map[string]int{"forced_open": 2}, got.Objects[1].States)
	for word, want := range map[string]int{"closed": 200, "disabled": 200, "shadow": 200, "open": 503} {
		k.sendAction("force", "name=database", `{"state":"`+word+`"}`)
		status, _ = getHealth(t, h, "/ready")
		require.Equal(t, want, status, word)
	}
	_, err := admin.NewHealth(admin.HealthConfig{NotReady: []string{"x"}}, l)
	require.ErrorContains(t, err, `"x", which is not a gate or breaker`)
}

func TestDetailsCountFiringAlerts(t *testing.T) {
	holds := alert.Bool(func() bool { return true })
	m := alert.NewMonitor(alert.Config{Instance: "web-1"},
		alert.Rule{Name: "fires", Value: holds, When: alert.Above(0)},
		alert.Rule{Name: "pends", Value: holds, When: alert.Above(0), For: time.Hour})
	m.Evaluate(time.Now())
	_, got := getHealth(t, newHealth(t, admin.HealthConfig{}, m, newMonitor(), newMonitor()), "/details")
	require.Equal(t, 1, *got.Objects[0].Firing)
	require.Zero(t, *got.Objects[1].Firing)
}

// Drain waits also for the calls of keys that the group has no room for.
func TestDrainWaitsForKeysWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{MaxKeys: 1, MaxSeries: breaker.Off, Gate: weir.Config{MaxConcurrent: 3}})
		for _, key := range []string{"a", "without room"} {
			permit, err := hosts.Get(key).Allow(t.Context())
			require.NoError(t, err)
			time.AfterFunc(time.Minute, func() { permit.Record(t.Context(), nil, breaker.Success) })
		}
		h := newHealth(t, admin.HealthConfig{DrainDelay: breaker.Off}, hosts)
		_, got := getHealth(t, h, "/details")
		require.Equal(t, 2, *got.Objects[0].InFlight)
		ctx, cancel := context.WithTimeout(t.Context(), 59*time.Second)
		defer cancel()
		require.ErrorContains(t, h.Drain(ctx), "2 calls are in flight")
		require.NoError(t, h.Drain(t.Context()))
		_, got = getHealth(t, h, "/details")
		require.Zero(t, *got.Objects[0].InFlight)
	})
}
