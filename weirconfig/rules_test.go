package weirconfig_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
	"github.com/weir-go/weir/weirconfig"
)

func TestFaultsOfRules(t *testing.T) {
	require.Equal(t, []string{
		`w.yaml:3: monitor: interval is -1s, must be at least 0`,
		`w.yaml:5: rules[0]: of is "paymnts", must be the name of a gate or a group, did you mean payments?`,
		`w.yaml:5: rules[0]: value is missing`,
		`w.yaml:5: rules[0]: name is empty`,
		`w.yaml:6: rules[1]: value is "failures", must be failure_rate, slow_rate, rate, quantile, burn_rate, refusals, flaps or tripped`,
		`w.yaml:6: rules[1]: of is missing`,
		`w.yaml:7: rules[2]: when is missing`,
		`w.yaml:7: rules[2]: span is missing`,
		`w.yaml:7: rules[2]: slo is set, must not be for failure_rate`,
		`w.yaml:8: rules[3]: when is "over 5", must be a condition such as above 5%, below 10 or above 250ms`,
		`w.yaml:9: rules[4]: when is above 5, but the failure rate over 1m lies between 0 and 1: the rule could never fire`,
		`w.yaml:10: rules[5]: slo is 2, must lie between 0 and 1`,
		`w.yaml:10: rules[5]: name is that of rules[4] too`,
		`w.yaml:11: rules[6]: value is quantile, which requires breaker.latency of payments`,
		`w.yaml:12: rules[7]: value is slow_rate, which requires breaker.slow_call of payments`,
		`w.yaml:13: rules[8]: labels has "key", which is set by the monitor`,
		`w.yaml:13: rules[8]: no_data is "never", must be "keep-last", "resolve" or "fire"`,
		`w.yaml:14: rules[9]: describe is not data: a program sets it, see Config`,
		`w.yaml:15: rules[10]: short_span is 1h0m0s, must be shorter than span, 1h0m0s`,
		`w.yaml:16: rules[11]: short_span is -1h0m0s, must be positive`,
		`w.yaml:17: rules[12]: resolve is above 0.01, must be finite, point the other way than when, which is above 0.05, and not overlap with it`,
	}, faults(t, `
gates: {payments: }
monitor: {interval: -1s}
rules:
- {of: paymnts}
- {name: b, value: failures}
- {name: c, of: payments, value: failure_rate, slo: 99%}
- {name: d, of: payments, value: failure_rate, when: over 5, span: 1m}
- {name: e, of: payments, value: failure_rate, when: above 5, span: 1m}
- {name: e, of: payments, value: burn_rate, when: above 5, span: 1m, slo: 2}
- {name: g, of: payments, value: quantile, quantile: 99%, when: above 1s, span: 1m}
- {name: h, of: payments, value: slow_rate, when: above 1%, span: 1m}
- {name: i, of: payments, value: tripped, no_data: never, labels: {key: x}}
- {name: j, of: payments, value: tripped, describe: x}
- {name: l, of: payments, value: burn_rate, when: above 5, span: 1h, slo: 90%, short_span: 1h}
- {name: m, of: payments, value: burn_rate, when: above 5, span: 1h, slo: 90%, short_span: -1h}
- {name: k, of: payments, value: failure_rate, when: above 5%, resolve: above 1%, span: 1m}
`))
}

func TestFaultsOfLimits(t *testing.T) {
	require.Equal(t, []string{
		`w.yaml:2: limits.a: cost is not data: a program sets it, see Config`,
		`w.yaml:3: limits.a.proxies: trusted[1] is "ten", must be a network such as 10.0.0.0/8`,
		`w.yaml:3: limits.a.proxies: header is "a b", must be the name of a header`,
		`w.yaml:5: limits.a.policies[0]: by is "cookie", must be ip, route, nothing, or header:NAME such as header:X-Api-Key`,
		`w.yaml:6: limits.a.policies[1]: by is missing`,
		`w.yaml:6: limits.a.policies[1]: has no limit, must have rate, or limit and window, or quota, or remote`,
		`w.yaml:7: limits.a.policies[2]: rate is unlimited, must be finite`,
		`w.yaml:7: limits.a.policies[2]: name is that of limits.a.policies[1] in line 6 too: give it another name`,
		`w.yaml:8: limits.a.policies[3]: window is 0s, must be between 1ms and 8784h0m0s`,
	}, faults(t, `limits: {a: {
  cost: 1,
  proxies: {trusted: [10.0.0.0/8, ten], header: a b},
  policies: [
    {name: a, rate: 1/s, by: cookie},
    {name: b},
    {name: b, rate: unlimited, by: ip},
    {name: c, limit: 1, by: ip}]
}}`))
}

// Metrics tell breakers and limiters apart by their names alone.
func TestNamesAreUniqueAcrossLimitsGatesAndSinks(t *testing.T) {
	for want, text := range map[string]string{
		`w.yaml:6: limits.api.policies[0]: name is that of limits.web.policies[0] in line 4 too: give it another name`: `limits:
  web:
    policies:
      - {name: minute, rate: 10/s, by: ip}
  api:
    policies: [{name: minute, rate: 9/s, by: ip}]`,
		`w.yaml:2: limits.api.policies[0]: name is that of gates.minute in line 1 too: give it another name`: `gates: {minute: {rate: 1/s}}
limits: {api: {policies: [{name: minute, rate: 9/s, by: ip}]}}`,
		`w.yaml:2: limits.api.policies[0]: name is that of groups.minute in line 1 too: give it another name`: `groups: {minute: {gate: {max_concurrent: 1}}}
limits: {api: {policies: [{name: minute, rate: 9/s, by: ip}]}}`,
		`w.yaml:2: gates.slack: name is that of sinks.slack in line 1 too: give it another name`: `sinks: {slack: {kind: slack, url: "https://example.com"}}
gates: {slack: {}}`,
	} {
		require.Equal(t, []string{want}, faults(t, text))
	}
	file, err := weirconfig.Parse("w.yaml", []byte(`gates: {minute: {}, day: {}}
sinks: {minute: {kind: log}}
limits: {day: {policies: [{name: minute, rate: 9/s, by: ip}]}}`))
	require.NoError(t, err)
	set, err := weirconfig.New(file, weirconfig.Config{})
	require.NoError(t, err)
	_, err = read.New(func(*stat.Series) int { return 0 }, set)
	require.NoError(t, err, "these can be told apart")
}

func TestFaultsOfSinks(t *testing.T) {
	require.Equal(t, []string{
		`w.yaml:2: sinks.a: kind is missing`,
		`w.yaml:3: sinks.b: kind is "pigeon", must be log, slack, teams, pagerduty, mail, webhook or alertmanager`,
		`w.yaml:4: sinks.c: url is missing`,
		`w.yaml:5: sinks.d: url (not shown) must be absolute, with scheme http or https`,
		`w.yaml:5: sinks.d: key is set, must not be for a sink of kind slack`,
		`w.yaml:6: sinks.e: key (not shown) must be whsec_ followed by 24 to 64 bytes in base64`,
		`w.yaml:7: sinks.f.breaker: max_cooldown is 10s, must be at least cooldown, 15s`,
		`w.yaml:8: sinks.g: url is set, must not be for a sink of kind log`,
		`w.yaml:9: sinks.h: name is not a field, because the key of the sink is its name`,
		`w.yaml:9: sinks.h: transport is not data: a program sets it, see Config`,
		`w.yaml:10: sinks.i: server is missing`,
		`w.yaml:10: sinks.i: from is missing`,
		`w.yaml:10: sinks.i: to is missing`,
		`w.yaml:10: sinks.i: password is set, must not be without user`,
		`w.yaml:10: sinks.i: url is set, must not be for a sink of kind mail`,
		`w.yaml:11: sinks.j: server (not shown) must be a host and a port, such as smtp.example.com:587`,
		`w.yaml:11: sinks.j: to (not shown) must be 1 to 100 e-mail addresses`,
		`w.yaml:11: sinks.j: repeat is -5s, must be at least 0, or off`,
		`w.yaml:11: sinks.j: template is set, must not be for a sink of kind mail`,
		`w.yaml:12: sinks.k: key is missing`,
		`w.yaml:13: sinks.l: key (not shown) must be 32 letters and digits`,
		`w.yaml:14: sinks.m: template is set, must not be with key`,
		`w.yaml:15: sinks.n: template is invalid: template: body:1: function "nope" not defined`,
		`w.yaml:16: sinks.o: template is invalid: the template fails for a test alert: the message is not valid JSON`,
		`w.yaml:17: sinks.p: server is set, must not be for a sink of kind teams`,
		`w.yaml:18: sinks.q: header (not shown) has a name or a value that cannot be sent, such as one with a line break`,
	}, faults(t, `sinks:
  a: {}
  b: {kind: pigeon}
  c: {kind: slack}
  d: {kind: slack, url: "gopher://hunter2", key: whsec_MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw}
  e: {kind: webhook, url: "http://localhost", key: hunter2}
  f: {kind: slack, url: "http://localhost", breaker: {max_cooldown: 10s}}
  g: {kind: log, url: "http://localhost"}
  h: {kind: log, name: x, transport: y}
  i: {kind: mail, password: hunter2, url: "http://localhost"}
  j: {kind: mail, server: hunter2, from: a@b.example, to: [c@d.example, hunter2], repeat: -5s, template: "{}"}
  k: {kind: pagerduty}
  l: {kind: pagerduty, key: hunter2}
  m: {kind: webhook, url: "http://localhost", key: whsec_MDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw, template: "{}"}
  n: {kind: webhook, url: "http://localhost", template: "{{nope}}"}
  o: {kind: webhook, url: "http://localhost", template: "hunter2"}
  p: {kind: teams, url: "http://localhost", server: "x:25"}
  q: {kind: slack, url: "http://localhost", header: {A b: x}}
`))
}
