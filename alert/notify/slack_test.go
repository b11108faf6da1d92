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

// slackPosts returns what is posted to Slack for the alerts.
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
	posts := slackPosts(t, firing(), resolved())
	require.JSONEq(t, `{
		"text": "[FIRING] errors", "parse": "none",
		"blocks": [{"type": "section", "text": {"type": "plain_text", "text": "[FIRING] errors", "emoji": false}}],
		"attachments": [{"color": "#a30200", "blocks": [
			{"type": "section", "text": {"type": "plain_text", "text": "failure rate is &lt;0.4&gt; &amp; rising", "emoji": false}},
			{"type": "section", "fields": [{"type": "plain_text", "text": "severity: page", "emoji": false}]},
			{"type": "context", "elements": [{"type": "mrkdwn", "text": "<!date^1767323045^{date_num} {time_secs}|2026-01-02T03:04:05Z>"}]}
		]}]}`, posts[0])
	require.Contains(t, posts[1], `"text":"[RESOLVED] errors"`)
	require.Contains(t, posts[1], `"color":"#2eb886"`)
	require.Contains(t, posts[1], `^1767326645^`)
}

// object is a part of a message, of any type.
type object struct {
	Type, Text string
	Emoji      *bool
}

type section struct {
	Type     string
	Text     *object
	Fields   []object
	Elements []object
}

type slackPost struct {
	Text        string
	Parse       string
	Blocks      []section
	Attachments []struct{ Blocks []section }
}

// texts returns all texts of the message, and checks the numbers that Slack bounds.
func (p *slackPost) texts(t *testing.T) (texts []object) {
	blocks := p.Blocks
	for _, a := range p.Attachments {
		require.LessOrEqual(t, len(a.Blocks), 50)
		blocks = append(blocks, a.Blocks...)
	}
	for _, b := range blocks {
		require.LessOrEqual(t, len(b.Fields), 10)
		require.LessOrEqual(t, len(b.Elements), 10)
		for _, f := range b.Fields {
			require.LessOrEqual(t, utf8.RuneCountInString(f.Text), 2000)
		}
		texts = append(append(texts, b.Fields...), b.Elements...)
		if b.Text != nil {
			texts = append(texts, *b.Text)
		}
	}
	return texts
}

func TestSlackTakesNothingOfAStrangersForMarkup(t *testing.T) {
	const evil = "<!channel> <@U123> <https://evil.example|ok> & @here *b* _i_ `c` ~s~ :bomb: http://auto.example\n> quote"
	long := strings.Repeat("x", 200_000)
	labels := map[string]string{"alertname": "x"}
	for i := range 150 {
		labels[fmt.Sprintf("l%03d", i)] = strings.Repeat("<&>", 1000)
	}
	for _, a := range []alert.Alert{
		{Rule: evil, Key: evil, State: alert.Firing, Summary: evil, Labels: map[string]string{"alertname": evil, "key": evil}},
		{Rule: long, State: alert.Firing, Summary: strings.Repeat("é<", 100_000), Labels: map[string]string{"alertname": long, "key": long}},
		{Rule: "x", State: alert.Firing, Labels: labels},
		{Rule: "\xff\x00", State: alert.Firing, Summary: strings.Repeat("\xff", 10_000)},
		{},
	} {
		body := slackPosts(t, a)[0]
		require.Less(t, len(body), 512<<10)
		var p slackPost
		require.NoError(t, json.Unmarshal([]byte(body), &p))
		require.Equal(t, "none", p.Parse)
		require.LessOrEqual(t, utf8.RuneCountInString(p.Text), 4000)
		require.NotContains(t, p.Text, "<")
		for _, text := range p.texts(t) {
			require.NotEmpty(t, text.Text)
			require.LessOrEqual(t, utf8.RuneCountInString(text.Text), 3000)
			if text.Type == "mrkdwn" {
				require.Regexp(t, `^<!date\^-?\d+\^\{date_num\} \{time_secs\}\|[-0-9TZ:]+>$`, text.Text, "a time, and nothing of the alert's")
				continue
			}
			require.Equal(t, "plain_text", text.Type)
			require.False(t, *text.Emoji)
			require.NotContains(t, text.Text, "<")
			require.NotRegexp(t, `&(?:a?m?p?|l?t?|g?t?)…?$`, text.Text, "no escape is cut")
		}
	}
}

func TestSlackShowsAllThatFits(t *testing.T) {
	a := firing()
	for _, text := range []string{strings.Repeat("é", 3000), strings.Repeat("é", 3001), strings.Repeat("<", 750), strings.Repeat("<", 751)} {
		a.Summary = text
		var p slackPost
		require.NoError(t, json.Unmarshal([]byte(slackPosts(t, a)[0]), &p))
		shown := strings.ReplaceAll(p.Attachments[0].Blocks[0].Text.Text, "&lt;", "<")
		if n := utf8.RuneCountInString(text); n == 3000 || n == 750 {
			require.Equal(t, text, shown)
		} else {
			require.True(t, strings.HasSuffix(shown, "…"))
			require.Greater(t, len(shown)*5, len(text)*4)
		}
	}
}
