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

func annotatedAlert() alert.Alert {
	a := firingAlert()
	a.Annotations = map[string]string{
		"description": "see <here> & there", "runbook": "https://runbooks.example/x?a=1&b=2", "summary": "not the one that is sent",
	}
	return a
}

func TestAnnotationsAreSentToEveryReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		defer server.stop()
		want := map[string]string{
			"summary": "failure rate is <0.4> & rising", "value": "0.4",
			"description": "see <here> & there", "runbook": "https://runbooks.example/x?a=1&b=2",
		}
		hook := notify.NewWebhook(notify.Config{URL: "http://a.example", Transport: server.transport})
		require.NoError(t, hook.Notify(t.Context(), annotatedAlert()))
		var message struct {
			CommonAnnotations map[string]string
			Alerts            []struct{ Annotations map[string]string }
		}
		require.NoError(t, json.Unmarshal(server.requests()[0].body, &message))
		require.Equal(t, want, message.CommonAnnotations)
		require.Equal(t, want, message.Alerts[0].Annotations)

		am := notify.NewAlertmanager(notify.Config{URL: "http://am.example", Transport: server.transport})
		require.NoError(t, am.Notify(t.Context(), annotatedAlert()))
		var posted []struct{ Annotations, Labels map[string]string }
		require.NoError(t, json.Unmarshal(server.requests()[1].body, &posted))
		require.Equal(t, want, posted[0].Annotations)
		require.Equal(t, map[string]string{"alertname": "errors", "severity": "page"}, posted[0].Labels)
	})
}

func TestSlackShowsAnnotations(t *testing.T) {
	fields := func(a alert.Alert) (texts []string) {
		var p slackPost
		require.NoError(t, json.Unmarshal([]byte(slackPosts(t, a)[0]), &p))
		for _, f := range p.Attachments[0].Fields {
			texts = append(texts, f.Title+": "+f.Value)
		}
		return texts
	}
	require.Equal(t, []string{
		"severity: page", "description: see &lt;here&gt; &amp; there", "runbook: <https://runbooks.example/x?a=1&amp;b=2>",
	}, fields(annotatedAlert()))

	for _, text := range []string{
		"https://evil.example|ok", "https://a.example> <!channel>", "https://a.example and more", "javascript:alert(1)", "//a.example",
		"https://a.example/x|ok", "https://a.example/x><!channel>", "https://a.example/x y",
		"https:///no-host", "https://a.example/" + strings.Repeat("x", 2000),
	} {
		a := firingAlert()
		a.Annotations = map[string]string{"runbook": text}
		require.NotContains(t, fields(a)[1], "<", text)
	}
	many := firingAlert()
	many.Annotations = map[string]string{}
	for i := range 60 {
		many.Annotations["a"+strings.Repeat("x", i)] = "x"
	}
	got := fields(many)
	require.Len(t, got, 50)
	require.Equal(t, "…: and 12 more", got[49], "of 61")
}
