package weirhttp_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

func TestLogRefusedRequestsHasNoSecrets(t *testing.T) {
	for _, c := range []struct {
		refusal weirhttp.Refusal
		want    string
	}{
		{
			weirhttp.Refusal{Status: 429, Policies: []string{"second", "day"}, RetryAfter: 1500 * time.Millisecond},
			`level=INFO msg="request refused" http.response.status_code=429 client.address=192.0.2.1 http.route="GET /a" weir.retry_after=1.5 weir.limiter.name=second,day event.name=weir.http.limit weir.log.left_out=0`,
		},
		{
			weirhttp.Refusal{Status: 429, Policies: []string{"day"}, RetryAfter: limiter.Never},
			`level=INFO msg="request refused" http.response.status_code=429 client.address=192.0.2.1 http.route="GET /a" weir.limiter.name=day event.name=weir.http.limit weir.log.left_out=0`,
		},
		{
			weirhttp.Refusal{Status: 503, Err: errors.New("open")},
			`level=INFO msg="request refused" http.response.status_code=503 client.address=192.0.2.1 http.route="GET /a" error=open event.name=weir.http.limit weir.log.left_out=0`,
		},
	} {
		var out bytes.Buffer
		r := httptest.NewRequest(http.MethodGet, "/a?token=secret", http.NoBody)
		r.Header.Set("X-Api-Key", "secret")
		r.Pattern = "GET /a"
		weirhttp.LogRefusedRequests(plainLogger(&out))(r, c.refusal)
		require.Equal(t, c.want+"\n", out.String())
	}
	require.Panics(t, func() { weirhttp.LogRefusedRequests(nil) })
}

func plainLogger(out *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func TestLogRefusedRequestsIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{perMinute(1, weirhttp.ByNothing)}, OnRefusal: weirhttp.LogRefusedRequests(plainLogger(&out))})
		for range 1001 {
			request{}.send(l.Handler(okHandler))
		}
		require.Equal(t, 10, strings.Count(out.String(), "\n"))
		time.Sleep(time.Second)
		out.Reset()
		request{}.send(l.Handler(okHandler))
		require.Contains(t, out.String(), "weir.log.left_out=990")
		out.Reset()
		request{}.send(l.Handler(okHandler))
		require.Contains(t, out.String(), "weir.log.left_out=0", "the records before have been counted")
	})
}
