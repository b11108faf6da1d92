package weirconfig

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/view"
)

// sinkChanges are changes of each field of a sink. HOST is a server.
var sinkChanges = map[string][2]string{
	"url":      {"HOOK", `kind: webhook, url: "http://HOST/other"`},
	"header":   {"HOOK", `HOOK, header: {Authorization: x}`},
	"repeat":   {"HOOK", "HOOK, repeat: 7m"},
	"kind":     {"HOOK", `kind: slack, url: "http://HOST/"`},
	"key":      {"HOOK", "HOOK, key: whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="},
	"template": {"HOOK", `HOOK, template: '{"a": 1}'`},
	"server":   {"MAIL", "kind: mail, server: 127.0.0.1:2, from: a@b.example, to: c@d.example"},
	"user":     {"MAIL", "MAIL, user: u, password: p"},
	"password": {"MAIL, user: u, password: p", "MAIL, user: u, password: q"},
	"from":     {"MAIL", "kind: mail, server: 127.0.0.1:1, from: x@b.example, to: c@d.example"},
	"to":       {"MAIL", "kind: mail, server: 127.0.0.1:1, from: a@b.example, to: [c@d.example, x@d.example]"},
	"no_tls":   {"MAIL", "MAIL, no_tls: true"},
}

// sinkFile returns a file with a sink.
func sinkFile(host, fields string) string {
	fields = strings.NewReplacer(
		"HOOK", `kind: webhook, url: "http://HOST/"`, "MAIL", "kind: mail, server: 127.0.0.1:1, from: a@b.example, to: c@d.example",
	).Replace(fields)
	return "sinks: {s: {" + strings.ReplaceAll(fields, "HOST", host) + "}}"
}

// A sink that an update changes gets a new notifier, with the new fields and a new breaker.
func TestEachChangeOfASinkIsInEffect(t *testing.T) {
	received := func(fields ...string) string {
		requests := make(chan string, 100)
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			requests <- fmt.Sprintln(r.URL, r.Header["Authorization"], r.Header["Webhook-Signature"] != nil, strings.Contains(string(body), "alertname"))
		}))
		defer server.Close()
		var files []string
		for _, f := range fields {
			files = append(files, sinkFile(strings.TrimPrefix(server.URL, "http://"), f))
		}
		set, err := New(mustParse(t, files[0]), Config{})
		require.NoError(t, err)
		for _, text := range files[1:] {
			before := set.setup.sinks["s"].Notifier
			require.NoError(t, set.Update(mustParse(t, text)))
			require.NotSame(t, before, set.setup.sinks["s"].Notifier)
		}
		require.Equal(t, mustParse(t, files[len(files)-1]).doc().Sinks["s"], set.setup.sinks["s"].sink)
		trace := new(strings.Builder)
		if set.setup.sinks["s"].sink.Kind != mailSink {
			require.NoError(t, set.Monitor().Test(t.Context(), "s"))
			trace.WriteString(<-requests)
		}
		for v := range set.Sources()[0].(view.Viewer).Views {
			fmt.Fprintln(trace, v.Name())
		}
		return trace.String()
	}
	for _, key := range keysOf(reflect.TypeFor[sink](), "") {
		require.Contains(t, sinkChanges, key)
		before, after := sinkChanges[key][0], sinkChanges[key][1]
		require.Equal(t, received(after), received(before, after), key)
		if key == "url" || key == "header" || key == "kind" || key == "key" || key == "template" {
			require.NotEqual(t, received(before), received(after), key)
		}
	}
}

func exerciseSink(t *testing.T, s *Set, trace *strings.Builder) {
	t.Helper()
	_ = s.Monitor().Test(t.Context(), "s") // there is no server
	for series, h := range s.Sources()[0].(stat.HistogramSource).Histograms {
		fmt.Fprintln(trace, series.Instrument.Name, h.Count())
	}
	writeObjects(t, s, trace)
}

func TestEachChangeOfTheBreakerOfASinkIsInEffect(t *testing.T) {
	for _, key := range keysOf(reflect.TypeFor[breaker.Config](), "breaker.") {
		c := change{key: key, exercise: exerciseSink}
		text := func(key string) string {
			_, config, _ := strings.Cut(configWith(key), ", breaker: ")
			return sinkFile("127.0.0.1:0", "HOOK, breaker: "+config)
		}
		c.before, c.after = text(""), text(key)
		c.requireInEffect(t)
	}
}
