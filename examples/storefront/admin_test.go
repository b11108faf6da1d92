package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// request sends a request about payments with the token. It returns the status and the body.
func request(t *testing.T, s *storefront, token, method, verb, body string) (status int, text string) {
	url := "http://" + s.metrics.addr + "/admin/weir/" + verb + "?name=payments"
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

func buildWithToken(t *testing.T, token string) *storefront {
	o := runOf(time.Second)
	o.token = token
	s, err := build(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = s.close() })
	return s
}

func TestTheAdminAPIChangesTheLimitWithTheToken(t *testing.T) {
	s := buildWithToken(t, "secret")
	const lower = `{"rate": "20/s"}`
	for _, wrong := range []string{"", "wrong", "secret2"} {
		status, _ := request(t, s, wrong, http.MethodPost, "limits", lower)
		require.Equal(t, http.StatusUnauthorized, status, wrong)
	}
	_, before := request(t, s, "secret", http.MethodGet, "object", "")
	require.Contains(t, before, `"rate": "250/s"`)
	status, answer := request(t, s, "secret", http.MethodPost, "limits", lower)
	require.Equal(t, http.StatusOK, status, answer)
	_, after := request(t, s, "secret", http.MethodGet, "object", "")
	require.Contains(t, after, `"rate": "20/s"`)
}

func TestThereIsNoAdminAPIWithoutAToken(t *testing.T) {
	status, _ := request(t, buildWithToken(t, ""), "", http.MethodPost, "limits", `{"rate": "20/s"}`)
	require.Equal(t, http.StatusNotFound, status)
}
