package notify_test

import (
	"encoding/json"
	"io"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
)

func FuzzMailMessage(f *testing.F) {
	for _, text := range []string{"x", "a\r\nBcc: b@c.example", "=?utf-8?q?=0A?=", "é\xff", ".", strings.Repeat("ü", 300), "\u2028\x7f\t"} {
		f.Add(text, text)
	}
	c := notify.MailConfig{From: "weir <a@b.example>", To: []string{"c@d.example"}}
	f.Fuzz(func(t *testing.T, rule, summary string) {
		a := alert.Alert{ID: "0123456789abcdef", Rule: rule, Summary: summary, State: alert.Firing}
		for _, alerts := range [][]alert.Alert{{a}, {a, a}} {
			raw := string(notify.MailMessage(c, alerts, time.Unix(0, 0)))
			require.Less(t, len(raw), 64_000)
			for line := range strings.SplitSeq(raw, "\r\n") {
				require.LessOrEqual(t, len(line), 998)
				require.NotContains(t, line, "\n")
				require.NotContains(t, line, "\r")
			}
			message, err := mail.ReadMessage(strings.NewReader(raw))
			require.NoError(t, err)
			require.Len(t, message.Header, 10-len(alerts)+1)
			_, err = new(mime.WordDecoder).DecodeHeader(message.Header.Get("Subject"))
			require.NoError(t, err)
			_, err = io.ReadAll(quotedprintable.NewReader(message.Body))
			require.NoError(t, err)
		}
	})
}

func FuzzTemplateValues(f *testing.F) {
	for _, text := range []string{"x", `"`, `\`, `\"`, "\n\x00", "é\xff", "{{.ID}}", "</script>", "\u2028"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		synctest.Test(t, func(t *testing.T) {
			server := newServer()
			n := notify.NewTemplateWebhook(notify.Config{URL: "http://x.example/{{.Key}}", Transport: server.transport},
				`{"a": "\"\\{{.Summary}}\\", "b": [{{.Summary}}, {{.Labels}}], "c": "{{.Key}}{{.Summary}}"}`)
			a := alert.Alert{Summary: text, Key: "k" + text, Labels: map[string]string{"l": text}, State: alert.Firing}
			require.NoError(t, n.Notify(t.Context(), a))
			var got struct {
				A string
				B []any
				C string
			}
			require.NoError(t, json.Unmarshal(server.requests()[0].body, &got))
			if utf8.ValidString(text) {
				require.Equal(t, `"\`+text+`\`, got.A)
				require.Equal(t, []any{text, map[string]any{"l": text}}, got.B)
				require.Equal(t, "k"+text+text, got.C)
			}
			require.NotContains(t, server.requests()[0].path[1:], "/")
			server.stop()
		})
	})
}
