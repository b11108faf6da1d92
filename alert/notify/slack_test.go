package notify_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
)

// slackPosts returns the bodies posted to Slack for the alerts.
func slackPosts(t *testing.T, alerts ...alert.Alert) (bodies []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		slack := notify.NewSlack(notify.Config{URL: "http://slack.example/services/x", Transport: server.transport})
		for _, a := range alerts {
			require.NoError(t, slack.Notify(t.Context(), a))
		}
		for _, r := range server.requests() {
			bodies = append(bodies, string(r.body))
		}
		server.stop()
	})
	return bodies
}

func TestSlackMessage(t *testing.T) {
	posts := slackPosts(t, firingAlert(), resolvedAlert())
	require.JSONEq(t, `{
		"text": "[FIRING] errors", "mrkdwn": false, "parse": "none", "unfurl_links": false, "unfurl_media": false,
		"attachments": [{
			"color": "danger", "text": "failure rate is &lt;0.4&gt; &amp; rising", "mrkdwn_in": [], "ts": 1767323045,
			"fields": [{"title": "severity", "value": "page", "short": true}]
		}]}`, posts[0])
	require.Contains(t, posts[1], `"text":"[RESOLVED] errors"`)
	require.Contains(t, posts[1], `"color":"good"`)
	require.Contains(t, posts[1], `"ts":1767326645`)
}

type slackPost struct {
	Text        string
	Markup      *bool `json:"mrkdwn"`
	Parse       string
	Attachments []struct {
		Text     string
		MarkupIn []string `json:"mrkdwn_in"`
		Fields   []struct{ Title, Value string }
	}
}

func TestSlackEscapesMarkup(t *testing.T) {
	const evil = "<!channel> <@U123> <https://evil.example|ok> & @here *b* _i_ `c` ~s~ http://auto.example\n> quote"
	long := strings.Repeat("x", 200_000)
	labels := map[string]string{"alertname": "x"}
	for i := range 150 {
		labels[fmt.Sprintf("l%03d", i)] = strings.Repeat("<&>", 1000)
	}
	for _, a := range []alert.Alert{
		{Rule: evil, Key: evil, State: alert.Firing, Summary: evil, Labels: map[string]string{"alertname": evil, "key": evil, evil: "x"}},
		{Rule: long, State: alert.Firing, Summary: strings.Repeat("é<", 100_000), Labels: map[string]string{"alertname": long, "key": long}},
		{Rule: "x", State: alert.Firing, Labels: labels},
		{Rule: "\xff\x00", State: alert.Firing, Summary: strings.Repeat("\xff", 10_000)},
		{},
	} {
		body := slackPosts(t, a)[0]
		require.Less(t, len(body), 512<<10)
		var p slackPost
		require.NoError(t, json.Unmarshal([]byte(body), &p))
		require.False(t, *p.Markup)
		require.Equal(t, "none", p.Parse)
		details := p.Attachments[0]
		require.NotNil(t, details.MarkupIn)
		require.Empty(t, details.MarkupIn)
		require.LessOrEqual(t, len(details.Fields), 50)
		texts := []string{p.Text, details.Text}
		for _, f := range details.Fields {
			require.LessOrEqual(t, utf8.RuneCountInString(f.Value), 2000)
			texts = append(texts, f.Title, f.Value)
		}
		for _, text := range texts {
			require.LessOrEqual(t, utf8.RuneCountInString(text), 3000)
			require.NotRegexp(t, `[<>]|://|&(?:[^agl]|a[^m]|[gl][^t]|$)`, text, "a control character, a link, or half an escape")
		}
	}
}

func TestSlackTextsAreTruncatedOnlyIfTooLong(t *testing.T) {
	for text, whole := range map[string]bool{
		strings.Repeat("é", 3000): true, strings.Repeat("é", 3001): false,
		strings.Repeat("<", 750): true, strings.Repeat("<", 751): false, "x" + strings.Repeat("<", 751): false,
		"xx" + strings.Repeat("<", 751): false, "xxx" + strings.Repeat("<", 751): false,
	} {
		a := firingAlert()
		a.Summary = text
		var p slackPost
		require.NoError(t, json.Unmarshal([]byte(slackPosts(t, a)[0]), &p))
		shown := strings.ReplaceAll(p.Attachments[0].Text, "&lt;", "<")
		if whole {
			require.Equal(t, text, shown)
			continue
		}
		cut, found := strings.CutSuffix(shown, "…")
		require.True(t, found)
		require.True(t, strings.HasPrefix(text, cut))
		require.GreaterOrEqual(t, utf8.RuneCountInString(cut), 748)
	}
}
