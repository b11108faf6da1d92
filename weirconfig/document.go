package weirconfig

import (
	"net/http"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
	"github.com/weir-go/weir/weirhttp"
)

// document is the form of a file. The comments of its fields, and of the fields of the configs
// within it, are the descriptions of the JSON Schema.
type document struct {
	// Gates are the gates by their names. A gate guards the calls to one service.
	Gates map[string]weir.Config
	// Groups are groups of gates by their names. A group has one gate per key. Keys are texts.
	Groups map[string]weir.GroupConfig
	// Limits are the limits of HTTP servers by their names.
	Limits map[string]limit
	// Monitor configures the alert monitor, which evaluates the rules.
	Monitor alert.Config
	// Rules are the alert rules. Default none.
	Rules []rule
	// Sinks are the receivers of the alerts by their names. Each receives all alerts. Default none.
	Sinks map[string]sink
}

// limit is a limit of an HTTP server.
type limit struct {
	weirhttp.LimitConfig
	// Policies are the quotas. A request is taken from the quotas of all policies, or from none if
	// one of them refuses it. Default none.
	Policies []policy
}

// policy is a quota of a limit.
type policy struct {
	weirhttp.Policy
	// By selects the key of the quotas: ip for the address of the client, route for the pattern of
	// the ServeMux, header:NAME for the value of a header, or nothing for one quota that all
	// requests share. A list combines them. Required.
	By []keyFunc
}

// keyFunc is a key function in text form, such as ip or header:X-Api-Key.
type keyFunc struct {
	by func(*http.Request) string
}

// rule is an alert rule over one gate or group.
type rule struct {
	alert.Rule
	// Of is the name of a gate or a group of this file. The rule of a group watches each of its
	// gates, and raises one alert per key, except for refusals, which are those of all keys.
	// Required.
	Of string
	// Value is the number that the rule watches. failure_rate and slow_rate are the share of failed
	// or slow calls, and rate is the calls per second. quantile is a latency in seconds. burn_rate
	// is how fast the error budget of an objective is spent. refusals is the number of refused
	// calls. flaps is how often the breaker has closed again. tripped is 1 from the opening of the
	// breaker until it has closed. Required.
	Value valueKind
	// When is the condition under which the value is bad, such as above 5%, below 10 or above
	// 250ms. Required, except for tripped.
	When condition
	// Resolve is the condition under which a firing alert resolves. It compares in the opposite
	// direction to When, and no value meets both. Default none: the alert resolves as soon as When
	// no longer holds.
	Resolve condition
	// Span is the time span of the value. Required, except for tripped. For burn_rate it is the
	// long span.
	Span span
	// ShortSpan is the short span of burn_rate. Default a twelfth of Span.
	ShortSpan span
	// Quantile is the share of calls that are at most as slow as the value, such as 99%. Required
	// for quantile.
	Quantile float64
	// SLO is the share of calls that have to succeed, such as 99.9%. Required for burn_rate.
	SLO float64
}

// sink is a receiver of alerts.
type sink struct {
	notify.Config
	// Kind is slack, teams, pagerduty, mail, webhook, alertmanager, or log for the log of the
	// program, which has no other field. Required.
	Kind sinkKind
	// Key is the integration key of pagerduty, or signs the messages of a webhook according to the
	// Standard Webhooks specification: see notify.NewSignedWebhook. Default none. Required for
	// pagerduty.
	Key notify.Secret
	// Template makes the messages of a webhook, which are JSON: see notify.NewTemplateWebhook. Then
	// url may have actions too. Default none, which sends messages of Alertmanager's form.
	Template string
	// Server is the host and port of the SMTP server of mail. Required for mail.
	Server string
	// User is the name to log in to the server of mail with. Default none, which does not log in.
	User string
	// Password is the password of user. Default none.
	Password notify.Secret
	// From is the address of the sender of mail. Required for mail.
	From string
	// To are the addresses of the recipients of mail. Required for mail.
	To []string
	// NoTLS sends mail without encryption, to a server on the same host. Default false.
	NoTLS bool
}

// mail returns the config of a sink of the kind mail.
func (s sink) mail() notify.MailConfig {
	return notify.MailConfig{
		Name: s.Name, Server: s.Server, User: s.User, Password: s.Password, From: s.From, To: s.To, NoTLS: s.NoTLS,
		Repeat: s.Repeat, Breaker: s.Breaker,
	}
}
