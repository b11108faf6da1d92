package notify_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
)

const opsgenieURL = `http://api.example/v2/alerts{{if eq .State "resolved"}}/{{.ID}}/close{{end}}?identifierType=alias`

// renderAlert returns what a template sends for an alert.
func renderAlert(t *testing.T, url, body string, a alert.Alert) (path, sent string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		n := notify.NewTemplateWebhook(notify.Config{URL: notify.Secret(url), Transport: server.transport}, body)
		require.NoError(t, n.Notify(t.Context(), a))
		path, sent = server.requests()[0].path, string(server.requests()[0].body)
		server.stop()
	})
	return path, sent
}

func TestTemplateHasAnAddressPerState(t *testing.T) {
	const body = `{"message": "{{printf "%.10s" .Summary}}", "alias": "{{.ID}}", "details": {{.Labels}}}`
	path, sent := renderAlert(t, opsgenieURL, body, firingAlert())
	require.Equal(t, "/v2/alerts?identifierType=alias", path)
	require.JSONEq(t, `{"message": "failure ra", "alias": "0123456789abcdef", "details": {"alertname": "errors", "severity": "page"}}`, sent)
	path, _ = renderAlert(t, opsgenieURL, body, resolvedAlert())
	require.Equal(t, "/v2/alerts/0123456789abcdef/close?identifierType=alias", path)
}

func TestTemplateValues(t *testing.T) {
	for body, want := range map[string]string{
		`{{.Value}}`:                              `0.4`,
		`"{{.Value}}"`:                            `"0.4"`,
		`{{.Summary}}`:                            `"failure rate is <0.4> & rising"`,
		`{{.StartsAt}}`:                           `"2026-01-02T03:04:05Z"`,
		`"at {{.StartsAt}}"`:                      `"at 2026-01-02T03:04:05Z"`,
		`"{{.StartsAt.Unix}}"`:                    `"1767323045"`,
		`{{.State}}`:                              `"firing"`,
		`"{{.Labels.none}}"`:                      `""`,
		`{{.Labels.none}}`:                        `""`,
		`{{.Annotations}}`:                        `null`,
		`{"\"{{.Rule}}": 1}`:                      `{"\"errors": 1}`,
		`["\\", {{.Rule}}]`:                       `["\\", "errors"]`,
		`{{$x := .Rule}}"{{$x}}"`:                 `"errors"`,
		`{{with .Key}}1{{else}}{{.Rule}}{{end}}`:  `"errors"`,
		`"{{if .Calls}}a{{else}}{{.Bad}}{{end}}"`: `"0"`,
		`[{{range $k, $v := .Labels}}[{{$k}}, "{{$v}}"],{{end}} 0]`:            `[["alertname", "errors"], ["severity", "page"], 0]`,
		`{{define "x"}}"{{.}}"{{end}}[{{template "x" .Rule}}]`:                 `["errors"]`,
		`"{{.Summary | printf "%s %s" .Rule | printf "%.12s"}}"`:               `"errors failu"`,
		`{"priority": "{{if eq .Labels.severity "page"}}P1{{else}}P3{{end}}"}`: `{"priority": "P1"}`,
	} {
		_, sent := renderAlert(t, "http://x.example", body, firingAlert())
		require.JSONEq(t, want, sent, body)
	}
}

// The values of an alert may come from untrusted sources. A value cannot end the text in which the
// template puts it.
func TestTemplateValuesCannotChangeTheMessage(t *testing.T) {
	for _, evil := range []string{`", "admin": true, "x": "`, `\`, `\"`, `"`, "\n", "\x00", "\xff", `{{.ID}}`, "\u2028", "</script>", `\u0022`} {
		a := firingAlert()
		a.Summary, a.Key = evil, evil
		path, sent := renderAlert(t, "http://x.example/a/{{.Key}}?b={{.Key}}&c=d", `{"a": "x{{.Summary}}y", "b": {{.Summary}}, "{{.Key}}": 1}`, a)
		var got map[string]any
		require.NoError(t, json.Unmarshal([]byte(sent), &got), "%q", evil)
		valid := strings.ToValidUTF8(evil, "\uFFFD")
		require.Equal(t, map[string]any{"a": "x" + valid + "y", "b": valid, valid: 1.0}, got)
		require.Regexp(t, `^/a/[^/?&="{}\n ]+\?b=[^/?&="{}\n ]+&c=d$`, path)
	}
}

func TestInvalidTemplates(t *testing.T) {
	for want, c := range map[string]struct{ url, body string }{
		"notify: template: body:1:":                                           {"http://x.example", `{{`},
		"is not valid JSON":                                                   {"http://x.example", `{"a": {{.Rule}}x}`},
		"can't evaluate field Nope in type alert.Alert":                       {"http://x.example", `"{{.Nope}}"`},
		"function \"nope\" not defined":                                       {"http://x.example", `"{{nope}}"`},
		"notify: URL (not shown) is an invalid template":                      {"http://x.example/" + secret + "{{", `1`},
		"notify: URL (not shown) is a template that fails for a test alert":   {"http://x.example/" + secret + "{{.Nope}}", `1`},
		"notify: URL (not shown) must be absolute, with scheme http or https": {secret, `1`},
		"the message is not valid JSON":                                       {"http://x.example", `{{if eq .State "firing"}}1{{end}}`},
	} {
		var text string
		func() {
			defer func() { text = recover().(error).Error() }()
			notify.NewTemplateWebhook(notify.Config{URL: notify.Secret(c.url)}, c.body)
		}()
		require.Contains(t, text, want)
		require.NotContains(t, text, secret)
	}
}

// The values of an alert may change the path of the URL, but never the server.
func TestTemplateCannotChooseTheServer(t *testing.T) {
	for _, url := range []string{
		"http://{{.Key}}/", "http://{{.Key}}.example/", "http://x.example{{.Key}}/", "http://x.example@{{.Key}}/", "http://x.example:{{.Key}}/",
		"{{.Key}}://x.example/", "http:{{.Key}}", "{{.Key}}", "//{{.Key}}",
	} {
		require.Panics(t, func() { notify.NewTemplateWebhook(notify.Config{URL: notify.Secret(url)}, "1") }, url)
	}
	a := firingAlert()
	a.Key = "//evil.example/../@evil.example#?x=y"
	path, _ := renderAlert(t, "http://x.example/{{.Key}}/y", "1", a)
	require.Equal(t, "/%2F%2Fevil.example%2F..%2F%40evil.example%23%3Fx%3Dy/y", path)
}

// If a template fails for one alert, that alert is dropped and the error says why.
func TestTemplateThatFailsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		c := notify.Config{URL: "http://x.example", Transport: server.transport}
		for want, body := range map[string]string{
			"the message is not valid JSON":         `{{if eq .Rule "errors"}}{{else}}1{{end}}`,
			"it has more than 1048576 bytes":        `"{{range $i := .Calls}}0123456789abcdef{{end}}"`,
			"the message cannot be made: template:": `"{{if eq .Rule "errors"}}{{index .Rule 99}}{{end}}"`,
		} {
			a := firingAlert()
			a.Calls = 100_000
			err := notify.NewTemplateWebhook(c, body).Notify(t.Context(), a)
			require.ErrorContains(t, err, want)
			var failed *alert.DeliveryError
			require.ErrorAs(t, err, &failed)
			require.True(t, failed.Permanent)
		}
		require.Empty(t, server.requests())
		server.stop()
	})
}
