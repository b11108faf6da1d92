package admin_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/admin"
	"github.com/weir-go/weir/stat"
)

// authorize accepts the bearer token of a user, and lets guests only read.
func authorize(r *http.Request, a admin.Action) (string, error) {
	user, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if user == "guest" && a.Verb != "read" {
		return user, errors.New("guests only read")
	}
	return user, nil
}

// logs collects log lines.
type logs struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (l *logs) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.String()
}

type handlerTest struct {
	*testing.T
	handler *admin.Handler
	logs    *logs
}

func newHandlerTest(t *testing.T, sources ...stat.Source) *handlerTest {
	k := &handlerTest{T: t, logs: new(logs)}
	var err error
	k.handler, err = admin.New(admin.Config{Authorize: authorize, Logger: slog.New(slog.NewTextHandler(k.logs, nil))}, sources...)
	require.NoError(t, err)
	return k
}

// answer has the fields of all kinds of answers.
type answer struct {
	Status int
	Header http.Header
	Text   string

	Error         string
	Kind, Name    string
	Key, State    string
	Keys          bool
	Rate, Explain string
	Burst         int
	InFlight      *int `json:"in_flight"`
	MaxConcurrent int  `json:"max_concurrent"`
	Actions       []string
	Timed         []struct {
		What, Until string
		ReturnsTo   string `json:"returns_to"`
	}
	Objects    []answer
	Members    []answer
	More       bool
	Busiest    []struct{ Key string }
	History    []struct{ At, User, Verb, For, Reason, Before, After string }
	Limit      int
	K          float64
	MaxRefusal float64 `json:"max_refusal"`
	Rules      []string
	Notifiers  []string
	Alerts     []struct {
		Rule, Key, State, Severity string
		SilencedBy                 string `json:"silenced_by"`
	}
	Silences []struct {
		Silence string
		Match   []string
		EndsAt  string `json:"ends_at"`
	}
}

// send sends a request of alice, which edit may change.
func (k *handlerTest) send(method, target, body string, edit ...func(*http.Request)) answer {
	k.Helper()
	r := httptest.NewRequestWithContext(k.Context(), method, target, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer alice")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, f := range edit {
		f(r)
	}
	w := httptest.NewRecorder()
	k.handler.ServeHTTP(w, r)
	a := answer{Status: w.Code, Header: w.Header(), Text: w.Body.String()}
	require.Equal(k, "application/json", w.Header().Get("Content-Type"))
	require.Equal(k, "no-store", w.Header().Get("Cache-Control"))
	if !strings.Contains(target, "openapi") {
		require.NoError(k, json.Unmarshal(w.Body.Bytes(), &a), a.Text)
	}
	a.Status = w.Code
	return a
}

// sendAction sends an action that succeeds.
func (k *handlerTest) sendAction(verb, query, body string) answer {
	k.Helper()
	a := k.send("POST", "/"+verb+"?"+query, body)
	require.Equal(k, 200, a.Status, a.Error)
	return a
}

// requireRefused sends an action that is refused, and asserts the status and a part of the error.
func (k *handlerTest) requireRefused(status int, text, target, body string, edit ...func(*http.Request)) {
	k.Helper()
	a := k.send("POST", target, body, edit...)
	require.Equal(k, status, a.Status, a.Text)
	require.Contains(k, a.Error, text)
}
