package admin_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/admin"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/limiter"
)

// sessionHandler serves the objects of the session in docs/admin.md. The test calls it directly,
// because the connections of a server would leave goroutines behind for a while, and other tests
// count goroutines.
func sessionHandler(t *testing.T) http.Handler {
	monitor := alert.NewMonitor(alert.Config{Instance: "web-1", Notify: []alert.Notifier{alert.Log(slog.New(slog.DiscardHandler))}}, alert.Rule{
		Name: "payments fail", Value: alert.Bool(func() bool { return true }), When: alert.Above(0), Severity: "page",
	})
	monitor.Evaluate(time.Now())
	ops, err := admin.New(admin.Config{
		Authorize: func(r *http.Request, _ admin.Action) (string, error) {
			user, password, _ := r.BasicAuth()
			if password != "s3cret" {
				return "", errors.New("wrong password")
			}
			return user, nil
		},
		Logger: slog.New(slog.DiscardHandler),
	}, weir.New("payments", weir.Config{Rate: limiter.PerSecond(100), MaxConcurrent: 50}), weir.NewGroup[string]("hosts", weir.GroupConfig{}), monitor)
	require.NoError(t, err)
	return http.StripPrefix("/admin/weir", ops)
}

// curlCommand is the form of the commands of the session.
var curlCommand = regexp.MustCompile(`^curl -s -u (\w+):(\w+) (?:--json '(.*)' )?"\$U/(.*)"$`)

// curl sends the request of the command, and returns the text that the command prints.
func curl(t *testing.T, server http.Handler, command string) string {
	parts := curlCommand.FindStringSubmatch(command)
	require.NotNil(t, parts, command)
	method := http.MethodPost
	if parts[3] == "" {
		method = http.MethodGet
	}
	r := httptest.NewRequestWithContext(t.Context(), method, "/admin/weir/"+parts[4], strings.NewReader(parts[3]))
	r.Header.Set("Content-Type", "application/json")
	r.SetBasicAuth(parts[1], parts[2])
	answer := httptest.NewRecorder()
	server.ServeHTTP(answer, r)
	text := answer.Body.String()
	if len(parts[3]) > 0 && !strings.Contains(text, `"error"`) {
		require.Equal(t, http.StatusOK, answer.Code, command)
	}
	return text
}

func TestSessionOfTheDocumentation(t *testing.T) {
	page, err := os.ReadFile("../docs/admin.md")
	require.NoError(t, err)
	_, session, found := strings.Cut(string(page), "<!-- session -->\n```console\n")
	require.True(t, found)
	session, _, _ = strings.Cut(session, "```")
	steps := strings.Split("\n"+session, "\n$ ")[2:] // the first one sets U
	require.Greater(t, len(steps), 10)
	server := sessionHandler(t)
	for _, step := range steps {
		command, want, _ := strings.Cut(step, "\n")
		got := curl(t, server, command)
		if want = strings.TrimSpace(want); want == "" {
			require.NotContains(t, got, `"error"`, command)
			continue
		}
		var documented, answered any
		require.NoError(t, json.Unmarshal([]byte(want), &documented), want)
		require.NoError(t, json.Unmarshal([]byte(got), &answered), got)
		requireShortened(t, command, documented, answered)
	}
}

// requireShortened asserts that the answer has everything that the documented answer has. Times may
// differ.
func requireShortened(t *testing.T, at string, documented, answered any) {
	t.Helper()
	switch want := documented.(type) {
	case map[string]any:
		got, _ := answered.(map[string]any)
		for name, value := range want {
			require.Contains(t, got, name, at)
			requireShortened(t, at+" "+name, value, got[name])
		}
	case []any:
		got, _ := answered.([]any)
		require.Len(t, got, len(want), at)
		for i, value := range want {
			requireShortened(t, at, value, got[i])
		}
	case string:
		if _, err := time.Parse(time.RFC3339, want); err == nil {
			_, err = time.Parse(time.RFC3339, answered.(string))
			require.NoError(t, err, at)
			return
		}
		require.Equal(t, want, answered, at)
	default:
		require.Equal(t, want, answered, at)
	}
}
