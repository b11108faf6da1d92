package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// openWeb serves the gate of a demo.
func openWeb(t *testing.T, token string) *web {
	t.Helper()
	g, err := newGuard()
	require.NoError(t, err)
	w, err := newWeb(t.Context(), "127.0.0.1:0", token, g.Set)
	require.NoError(t, err)
	t.Cleanup(w.close)
	return w
}

// request sends a request with the token. It returns the status and the body.
func request(t *testing.T, token, method, url, body string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(content)
}

func TestTheLivePageShowsTheGate(t *testing.T) {
	w := openWeb(t, "")
	for path, holds := range map[string]string{"": "<!doctype html>", "snapshot.json": `"payments"`} {
		status, body := request(t, "", http.MethodGet, w.pageURL()+path, "")
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, body, holds)
	}
}

func TestTheAdminAPIChangesTheLimitWithTheToken(t *testing.T) {
	admin := "http://" + openWeb(t, "secret").addr + "/admin/weir/"
	const lower = `{"max_concurrent": 5}`
	for _, wrong := range []string{"", "wrong", "secret2"} {
		status, _ := request(t, wrong, http.MethodPost, admin+"limits?name=payments", lower)
		require.Equal(t, http.StatusUnauthorized, status, wrong)
	}
	_, before := request(t, "secret", http.MethodGet, admin+"object?name=payments", "")
	require.Contains(t, before, `"max_concurrent": 30`)
	status, answer := request(t, "secret", http.MethodPost, admin+"limits?name=payments", lower)
	require.Equal(t, http.StatusOK, status, answer)
	_, after := request(t, "secret", http.MethodGet, admin+"object?name=payments", "")
	require.Contains(t, after, `"max_concurrent": 5`)
}

func TestThereIsNoAdminAPIWithoutAToken(t *testing.T) {
	status, _ := request(t, "", http.MethodGet, "http://"+openWeb(t, "").addr+"/admin/weir/object?name=payments", "")
	require.Equal(t, http.StatusNotFound, status)
}

// TestTheServerBoundsTheTimeOfARequest checks the timeouts of the server. SECURITY.md has the same
// numbers.
func TestTheServerBoundsTheTimeOfARequest(t *testing.T) {
	w := openWeb(t, "")
	require.Equal(t, 2*time.Second, w.http.ReadHeaderTimeout)
	require.Equal(t, 5*time.Second, w.http.ReadTimeout)
	require.Equal(t, 10*time.Second, w.http.WriteTimeout)
	require.Equal(t, 30*time.Second, w.http.IdleTimeout)
	require.Zero(t, w.http.MaxHeaderBytes, "the default of net/http, 1 MB")
}

func TestARunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	require.NoError(t, run(ctx, options{run: time.Hour, listen: "127.0.0.1:0"}, &out))
	require.Contains(t, out.String(), "Watch the gate at http://127.0.0.1:")
	require.True(t, strings.HasSuffix(out.String(), `"opened":0,"alerts":0}`+"\n"), out.String())
	require.ErrorContains(t, run(t.Context(), options{run: time.Hour, listen: "no address"}, io.Discard), "no address")
}

func TestFlags(t *testing.T) {
	cases := map[string]string{
		"-for 0s":     "-for is 0s, must be above 0",
		"-for -1s":    "-for is -1s, must be above 0",
		"-for x":      `invalid value "x" for flag -for`,
		"-for 1s 2s":  `unexpected argument "2s"`,
		"-unheard of": "flag provided but not defined",
	}
	for args, want := range cases {
		var complaints bytes.Buffer
		_, err := parse(strings.Fields(args), &complaints)
		require.Error(t, err, args)
		require.Contains(t, complaints.String(), want, args)
	}

	o, err := parse(nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, options{run: 10 * time.Second, listen: "127.0.0.1:0"}, o)
}
