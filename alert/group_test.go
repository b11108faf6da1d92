package alert_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

// callsOfKeys makes calls to a member of a group.
type callsOfKeys func(key shardKey, fn func(context.Context) error) error

func TestEachWatchesTheMembersOfAnyGroup(t *testing.T) {
	breakers := breaker.NewGroup[shardKey]("shards", breaker.GroupConfig{})
	gates := weir.NewGroup[shardKey]("shards", weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(1000)}})
	for name, c := range map[string]struct {
		value alert.Value
		call  callsOfKeys
	}{
		"breaker.Group": {
			alert.Each(breakers.All(), func(b *breaker.Breaker) alert.Value { return alert.FailureRate(b, time.Minute) }),
			func(key shardKey, fn func(context.Context) error) error {
				return breakers.Get(key).Run(t.Context(), fn)
			},
		},
		"weir.Group": {
			alert.Each(gates.All(), func(g *weir.Gate) alert.Value { return alert.FailureRate(g, time.Minute) }),
			func(key shardKey, fn func(context.Context) error) error { return gates.Get(key).Run(t.Context(), fn) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			monitor := alert.NewMonitor(alert.Config{Logger: discardLogger()},
				alert.Rule{Name: "shard fails", Value: c.value, When: alert.Above(0.5), MinCalls: 5})
			eu, us := shardKey{"eu", 1}, shardKey{"us", 2}
			require.NoError(t, c.call(eu, succeed))
			require.NoError(t, c.call(us, succeed))
			monitor.Evaluate(time.Now())
			for range 3 { // members stay the same from one evaluation to the next
				for range 10 {
					require.NoError(t, c.call(eu, succeed))
					require.Error(t, c.call(us, failCall))
				}
				monitor.Evaluate(time.Now())
				alerts := monitor.Alerts()
				require.Len(t, alerts, 1)
				require.Equal(t, "{us 2}", alerts[0].Key)
				require.Equal(t, alert.Firing, alerts[0].State)
			}
			require.Equal(t, 30.0, float64(monitor.Alerts()[0].Calls))
		})
	}
}

func TestEachWatchesTheHostsOfATransport(t *testing.T) {
	hosts := weir.NewGroup[string]("web", weir.GroupConfig{})
	client := &http.Client{Transport: weirhttp.NewTransport(weirhttp.Per(hosts, weirhttp.ByHost), weirhttp.TransportConfig{Base: anyHostServer{}})}
	monitor := alert.NewMonitor(alert.Config{Logger: discardLogger()}, alert.Rule{
		Name: "host is called", When: alert.Above(0), MinCalls: 3,
		Value: alert.Each(hosts.All(), func(host *weir.Gate) alert.Value { return alert.Rate(host, time.Minute) }),
	})
	require.NoError(t, getFromHost(t.Context(), client, "a"))
	require.NoError(t, getFromHost(t.Context(), client, "b"))
	at := time.Now()
	monitor.Evaluate(at)
	for range 3 {
		require.NoError(t, getFromHost(t.Context(), client, "b"))
	}
	monitor.Evaluate(at.Add(5 * s))
	require.Len(t, monitor.Alerts(), 1)
	require.Equal(t, "b.example", monitor.Alerts()[0].Key)
}

func TestEachWatchesTheKeysOfALimiter(t *testing.T) {
	users := limiter.NewGroup(limiter.GroupConfig[int]{Rate: tenAnHour(), Burst: 10})
	monitor := alert.NewMonitor(alert.Config{Logger: discardLogger()}, alert.Rule{
		Name: "user has used up the limit", When: alert.Below(1), For: 10 * s,
		Value: alert.Each(users.All(), func(user limiter.Keyed[int]) alert.Value {
			return alert.Gauge(func() float64 { return float64(user.Take(0).Remaining) })
		}),
	})
	at := time.Now()
	for range 3 {
		users.Get(7).Take(10)
		users.Get(8).Take(1)
		monitor.Evaluate(at)
		at = at.Add(5 * s)
	}
	require.Len(t, monitor.Alerts(), 1)
	require.Equal(t, "7", monitor.Alerts()[0].Key)
	require.Equal(t, alert.Firing, monitor.Alerts()[0].State, "each evaluation finds the same member")
}
