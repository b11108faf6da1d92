package weirconfig_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/weirconfig"
	"github.com/weir-go/weir/weirhttp"
)

// newSet returns the objects of a valid file.
func newSet(t *testing.T, text string, c weirconfig.Config) *weirconfig.Set {
	t.Helper()
	file, err := weirconfig.Parse("w.yaml", []byte(text))
	require.NoError(t, err)
	set, err := weirconfig.New(file, c)
	require.NoError(t, err)
	return set
}

func TestGatesAndGroupsHaveTheConfigOfTheFile(t *testing.T) {
	set := newSet(t, `
gates:
  payments: {breaker: {consecutive_failures: 2, cooldown: 1h}}
groups:
  tenants: {gate: {max_concurrent: 1}, max_keys: 4, max_series: off}
`, weirconfig.Config{})

	payments := set.Gate("payments")
	fail := func(context.Context) error { return errors.New("down") }
	for range 2 {
		require.False(t, payments.Tripped())
		require.Error(t, payments.Run(t.Context(), fail))
	}
	require.True(t, payments.Tripped())

	tenants := set.Group("tenants")
	permit, err := tenants.Get("a").Allow(t.Context())
	require.NoError(t, err)
	_, err = tenants.Get("a").Allow(t.Context())
	require.ErrorIs(t, err, weir.ErrRefused)
	permit.Done(t.Context(), nil)
	require.Same(t, tenants, set.Group("tenants"))
}

func TestLimitsHaveThePoliciesOfTheFile(t *testing.T) {
	limit := newSet(t, `
limits:
  api:
    proxies: {trusted: [192.0.2.0/24], header: X-Real-Ip}
    policies:
      - {name: per-key, limit: 1, window: 1h, by: [ip, "header:X-Api-Key"]}
      - {name: all, rate: 3/24h, burst: 3, by: nothing, share_new: false}
`, weirconfig.Config{}).Limit("api")
	server := limit.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	status := func(ip, key string) int {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("X-Real-Ip", ip)
		r.Header.Set("X-Api-Key", key)
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		return w.Code
	}
	require.Equal(t, 200, status("198.51.100.1", "a"))
	require.Equal(t, 429, status("198.51.100.1", "a"), "the quota of the key")
	require.Equal(t, 200, status("198.51.100.1", "b"))
	require.Equal(t, 200, status("198.51.100.2", "b"))
	require.Equal(t, 429, status("198.51.100.3", "c"), "the quota of all")
}

func TestAProgramAddsFunctions(t *testing.T) {
	var changes []breaker.Change
	var notified []string
	var log bytes.Buffer
	set := newSet(t, `
gates: {payments: {}}
groups: {tenants: {gate: {}}}
limits: {api: {policies: [{name: all, limit: 1, window: 1h, by: nothing}]}}
`, weirconfig.Config{
		Gate: func(name string, c *weir.Config) {
			c.Breaker.OnChange = func(change breaker.Change) { changes = append(changes, change) }
			require.Contains(t, []string{"payments", "tenants"}, name)
		},
		Limit: func(name string, c *weirhttp.LimitConfig) {
			require.Equal(t, "api", name)
			c.Policies[0].When = func(*http.Request) bool { return false }
		},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Notify: []alert.Notifier{alert.Func("mine", func(_ context.Context, a alert.Alert) error {
			notified = append(notified, a.Rule)
			return nil
		})},
		Rules: []alert.Rule{
			{Name: "mine", Value: alert.Gauge(func() float64 { return 1 }), When: alert.Above(0)},
			{Name: "broken", Value: alert.Gauge(func() float64 { panic("a fault of the test") }), When: alert.Above(0)},
		},
	})
	set.Gate("payments").Breaker().Force(breaker.ForcedOpen, "")
	set.Group("tenants").Get("a").Breaker().Force(breaker.ForcedOpen, "")
	require.Len(t, changes, 2)
	w := httptest.NewRecorder()
	for range 2 {
		set.Limit("api").Handler(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		require.Equal(t, 404, w.Code)
	}
	set.Monitor().Evaluate(time.Now())
	require.Len(t, set.Monitor().Alerts(), 1)
	require.NoError(t, set.Monitor().Flush(t.Context()))
	require.Equal(t, []string{"mine"}, notified)
	require.Contains(t, log.String(), "a fault of the test")
}

func TestNewReturnsAnErrorIfAFunctionMakesAConfigInvalid(t *testing.T) {
	file, err := weirconfig.Parse("w.yaml", []byte(`{gates: {a: }, limits: {b: }, rules: [{name: x, of: a, value: tripped}]}`))
	require.NoError(t, err)
	_, err = weirconfig.New(file, weirconfig.Config{Gate: func(_ string, c *weir.Config) { c.MaxWait = -1 }})
	require.EqualError(t, err, `weirconfig: the config of "a" in w.yaml is invalid after Config.Gate has changed it: call Validate there for the reason`)
	_, err = weirconfig.New(file, weirconfig.Config{Limit: func(_ string, c *weirhttp.LimitConfig) { c.Policies = make([]weirhttp.Policy, 1) }})
	require.ErrorContains(t, err, `the config of "b" in w.yaml is invalid after Config.Limit`)
	_, err = weirconfig.New(file, weirconfig.Config{Rules: []alert.Rule{{
		Name: "x", Value: alert.Gauge(func() float64 { return 1 }), When: alert.Above(0),
	}}})
	require.ErrorContains(t, err, `rule "x": Name is not unique`)
}

func TestAMissingObjectPanicsWithTheNearestName(t *testing.T) {
	set := newSet(t, `{gates: {payments: }, groups: {tenants: }}`, weirconfig.Config{})
	require.PanicsWithValue(t, `weirconfig: w.yaml has no "paymnts" in gates, did you mean "payments"?`, func() { set.Gate("paymnts") })
	require.PanicsWithValue(t, `weirconfig: w.yaml has no "hosts" in groups`, func() { set.Group("hosts") })
	require.PanicsWithValue(t, `weirconfig: w.yaml has no "api" in limits`, func() { set.Limit("api") })
}

func TestSourcesAreEverythingWithMetrics(t *testing.T) {
	set := newSet(t, `
gates: {b: , a: }
groups: {g: }
limits: {l: {policies: [{name: all, limit: 1, window: 1h, by: nothing}]}}
sinks: {s: {kind: slack, url: "http://localhost"}, log: {kind: log}}
`, weirconfig.Config{})
	sources := set.Sources()
	require.Len(t, sources, 7)
	require.Equal(t, []any{set.Gate("a"), set.Gate("b"), set.Group("g"), set.Limit("l"), set.Monitor()},
		[]any{sources[0], sources[1], sources[2], sources[3], sources[5]})
	require.Same(t, set, sources[6])
	require.Equal(t, "s", sources[4].(alert.Notifier).Name())
}

// startReceiver starts a webhook that keeps what it receives.
func startReceiver(t *testing.T) (address string, received chan string) {
	received = make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<16))
		received <- r.Header.Get("Authorization") + " " + string(body)
	}))
	t.Cleanup(server.Close)
	return server.URL, received
}

func TestSinksReceiveAlerts(t *testing.T) {
	address, received := startReceiver(t)
	t.Setenv("ADDRESS", address)
	t.Setenv("TOKEN", "hunter2")
	var log bytes.Buffer
	set := newSet(t, `
gates: {payments: }
rules: [{name: payments open, of: payments, value: tripped, labels: {team: shop}, severity: page}]
sinks:
  hook: {kind: webhook, url: "${ADDRESS}", header: {Authorization: "Bearer ${TOKEN}"}}
  text: {kind: log}
`, weirconfig.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	set.Gate("payments").Breaker().Force(breaker.ForcedOpen, "")
	set.Monitor().Evaluate(time.Now())
	require.NoError(t, set.Monitor().Flush(t.Context()))
	message := <-received
	require.Contains(t, message, "Bearer hunter2 ")
	require.Contains(t, message, `"alertname":"payments open"`)
	require.Contains(t, message, `"team":"shop"`)
	require.Contains(t, log.String(), `weir.alert.rule="payments open"`)
	require.NotContains(t, log.String(), "hunter2")
}

// Each value that a rule can have is the same as that of its function in package alert.
func TestRulesWatchTheirValues(t *testing.T) {
	rules := map[string]string{
		"failure_rate": "span: 1m, when: above 50%",
		"slow_rate":    "span: 1m, when: above 10%",
		"rate":         "span: 1m, when: above 0.01",
		"quantile":     "quantile: 50%, span: 1m, when: above 250ms",
		"burn_rate":    "slo: 99%, span: 1h, when: above 0.1",
		"refusals":     "span: 1m, when: above 3",
		"flaps":        "span: 1m, when: above 0",
		"tripped":      "",
	}
	for value, fields := range rules {
		for _, of := range []string{"payments", "tenants"} {
			synctest.Test(t, func(t *testing.T) {
				set := newSet(t, `
gates: {payments: {rate: 10/1h, burst: 10, breaker: {slow_call: 1s, latency: true, consecutive_failures: 8}}}
groups: {tenants: {gate: {rate: 10/1h, burst: 10, breaker: {slow_call: 1s, latency: true, consecutive_failures: 8}}}}
rules: [{name: x, of: `+of+`, value: `+value+`, `+fields+`}]
`, weirconfig.Config{})
				gate := set.Gate("payments")
				if of == "tenants" {
					gate = set.Group("tenants").Get("a")
				}
				set.Monitor().Evaluate(time.Now())
				require.Empty(t, set.Monitor().Alerts(), value)
				for range 15 {
					_ = gate.Run(t.Context(), func(context.Context) error {
						time.Sleep(2 * time.Second)
						return errors.New("down")
					})
				}
				if value == "flaps" {
					gate.Breaker().Reset()
				}
				set.Monitor().Evaluate(time.Now())
				alerts := set.Monitor().Alerts()
				require.Len(t, alerts, 1, "%s of %s", value, of)
				if value == "burn_rate" {
					require.Contains(t, alerts[0].Summary, "over 1h and 5m")
				}
				require.Equal(t, of == "tenants" && value != "refusals", alerts[0].Key == "a")
			})
		}
	}
}
