package main

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheLivePageShowsTheGate(t *testing.T) {
	s, err := build(t.Context(), options{run: time.Minute, listen: "127.0.0.1:0"})
	require.NoError(t, err)
	defer func() {
		_, err := s.close()
		require.NoError(t, err)
	}()
	for path, holds := range map[string]string{"": "<!doctype html>", "snapshot.json": `"payments"`} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.pageURL()+path, http.NoBody)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode)
		require.Contains(t, string(body), holds)
	}
}
