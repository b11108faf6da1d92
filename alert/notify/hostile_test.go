package notify_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
)

// A token that was read from a file often ends with a line break.
func TestHeadersThatCannotBeSentAreInvalid(t *testing.T) {
	for value, valid := range map[string]bool{
		"Bearer " + secret: true, "a\tb": true, "é": true, "": true,
		secret + "\n": false, secret + "\r\nX: y": false, "\x00": false, "\x7f": false,
	} {
		err := notify.Config{URL: "http://a.example", Header: map[string]notify.Secret{"Authorization": notify.Secret(value)}}.Validate()
		require.Equal(t, valid, err == nil, "%q: %v", value, err)
		if err != nil {
			require.NotContains(t, err.Error(), secret)
		}
		// net/http agrees
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:1", http.NoBody)
		request.RequestURI = ""
		request.Header.Set("Authorization", value)
		_, err = (&http.Transport{}).RoundTrip(request)
		require.Equal(t, !valid, strings.Contains(err.Error(), "invalid header"), err)
	}
	for name, valid := range map[string]bool{"X-Scope_OrgID": true, "a!#$%&'*+-.^_`|~09AZaz": true, "": false, "a b": false, "a:": false, "a\n": false, "é": false, "[": false, "@": false} {
		err := notify.Config{URL: "http://a.example", Header: map[string]notify.Secret{name: "x"}}.Validate()
		require.Equal(t, valid, err == nil, "%q", name)
	}
}

func TestBodyThatDoesNotEndDelaysNothing(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	began := time.Now()
	require.NoError(t, notify.NewWebhook(notify.Config{URL: notify.Secret(server.URL)}).Notify(ctx, firingAlert()))
	require.Less(t, time.Since(began), 5*time.Second)
}

func TestHugeAnswersAreNoMissingConnection(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 200<<10))
	}))
	defer server.Close()
	err := notify.NewWebhook(notify.Config{URL: notify.Secret(server.URL)}).Notify(t.Context(), firingAlert())
	var failed *alert.DeliveryError
	require.ErrorAs(t, err, &failed)
	require.Empty(t, failed.Kind)
	require.ErrorContains(t, err, "headers of the answer are too long")
}

func TestLongRetryAfter(t *testing.T) {
	for field, want := range map[string]time.Duration{
		"2147483648": 1 << 31 * time.Second, "99999999999": 1 << 31 * time.Second, "99999999999999999999": 1 << 31 * time.Second,
		"2147483647": (1<<31 - 1) * time.Second, "-1": 0, "x": 0, "": 0,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", field)
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
		var failed *alert.DeliveryError
		require.ErrorAs(t, notify.NewWebhook(notify.Config{URL: notify.Secret(server.URL)}).Notify(t.Context(), firingAlert()), &failed)
		require.Equal(t, want, failed.RetryAfter(), field)
		server.Close()
	}
}

func TestTemplateValuesCannotChangeThePath(t *testing.T) {
	var paths []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { paths = append(paths, r.RequestURI) }))
	defer server.Close()
	w := notify.NewTemplateWebhook(notify.Config{URL: notify.Secret(server.URL + `/alerts/{{.Key}}{{.Summary}}/close`)}, `{}`)
	for _, c := range []struct{ key, summary, want string }{
		{"a", "", "/alerts/a/close"},
		{"a/b", "", "/alerts/a%2Fb/close"},
		{"...", "", "/alerts/.../close"},
		{"%2e%2e", "", "/alerts/%252e%252e/close"},
		{"a..", "", "/alerts/a../close"},
		{"..", "", ""},
		{".", "", ""},
		{".", ".", ""},
		{"../..", "", "/alerts/..%2F../close"},
		{"a/..", "", "/alerts/a%2F../close"},
	} {
		paths = nil
		a := firingAlert()
		a.Key, a.Summary = c.key, c.summary
		err := w.Notify(t.Context(), a)
		if c.want != "" {
			require.NoError(t, err)
			require.Equal(t, []string{c.want}, paths)
			continue
		}
		require.Empty(t, paths, c.key)
		var failed *alert.DeliveryError
		require.ErrorAs(t, err, &failed)
		require.True(t, failed.Permanent)
	}
}

func TestKeysAddNoLinesToAMail(t *testing.T) {
	withMailServer(t, func(t *testing.T, s *mailServer) {
		m := notify.NewMail(mailConfig(s))
		lines := func(line string) int {
			evil := "db" + line + "value: 0" + line + "[RESOLVED] payments"
			a := alert.Alert{ID: "0123456789abcdef", Rule: evil, Key: evil, Summary: "s", State: alert.Firing, Labels: map[string]string{"key": evil}}
			require.NoError(t, m.Notify(t.Context(), a))
			_, body := s.mails[len(s.mails)-1].parsed(t)
			return len(strings.FieldsFunc(body, func(r rune) bool { return strings.ContainsRune("\n\r\v\u0085\u2028", r) }))
		}
		want := lines(" ")
		for _, line := range []string{"\n", "\r\n", "\r", "\u2028", "\u0085", "\v"} {
			require.Equal(t, want, lines(line), "%q", line)
		}
	})
}
