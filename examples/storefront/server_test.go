package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestServersBoundTheTimeOfARequest checks the timeouts of the servers. SECURITY.md has the same
// numbers.
func TestServersBoundTheTimeOfARequest(t *testing.T) {
	s, err := build(t.Context(), runOf(time.Second))
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = s.close() })
	for _, one := range []*server{s.service, s.metrics} {
		require.Equal(t, 2*time.Second, one.http.ReadHeaderTimeout)
		require.Equal(t, 5*time.Second, one.http.ReadTimeout)
		require.Equal(t, 10*time.Second, one.http.WriteTimeout)
		require.Equal(t, 30*time.Second, one.http.IdleTimeout)
		require.Zero(t, one.http.MaxHeaderBytes, "the default of net/http, 1 MB")
	}
}

func TestAScrapeHasADeadline(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	_, err := scrape(t.Context(), silent.URL)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
