package weirconfig_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/weirconfig"
)

// Each kind of sink sends messages in the form that its receiver expects.
func TestKindsOfSinksSendTheirMessages(t *testing.T) {
	address, received := startReceiver(t)
	t.Setenv("ADDRESS", address)
	t.Setenv("TOKEN", "0123456789abcdef0123456789abcdef")
	for sink, want := range map[string]string{
		`{kind: slack, url: "${ADDRESS}"}`:                                         `"text":"[FIRING] payments open"`,
		`{kind: teams, url: "${ADDRESS}"}`:                                         `"application/vnd.microsoft.card.adaptive"`,
		`{kind: pagerduty, url: "${ADDRESS}", key: "${TOKEN}"}`:                    `"routing_key":"0123456789abcdef0123456789abcdef","event_action":"trigger"`,
		`{kind: webhook, url: "${ADDRESS}"}`:                                       `"version":"4"`,
		`{kind: alertmanager, url: "${ADDRESS}"}`:                                  `[{"labels":{"alertname":"payments open"`,
		`{kind: webhook, url: "${ADDRESS}/{{.ID}}", template: '{"a": {{.Rule}}}'}`: `{"a": "payments open"}`,
	} {
		set := newSet(t, `{gates: {payments: }, rules: [{name: payments open, of: payments, value: tripped}], sinks: {x: `+sink+`}}`, weirconfig.Config{})
		set.Gate("payments").Breaker().Force(breaker.ForcedOpen, "")
		set.Monitor().Evaluate(time.Now())
		require.NoError(t, set.Monitor().Flush(t.Context()), sink)
		require.Contains(t, <-received, want, sink)
		require.Len(t, set.Sources(), 4, "the breaker of the sink has metrics")
	}
	mail := newSet(t, `sinks: {x: {kind: mail, server: "127.0.0.1:1", from: a@b.example, to: c@d.example, no_tls: true}}`, weirconfig.Config{})
	require.ErrorContains(t, mail.Monitor().Test(t.Context(), "x"), "connection refused")
}
