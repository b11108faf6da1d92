package weirhttp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
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
			`level=INFO msg="request refused" event.name=weir.refusal weir.refusal.reason=limited weir.limiter.name=second,day weir.retry_after=1.5 http.response.status_code=429 client.address=192.0.2.1 http.route="GET /a" weir.log.left_out=0`,
		},
		{
			weirhttp.Refusal{Status: 429, Policies: []string{"day"}, RetryAfter: limiter.Never},
			`level=INFO msg="request refused" event.name=weir.refusal weir.refusal.reason=limited weir.limiter.name=day http.response.status_code=429 client.address=192.0.2.1 http.route="GET /a" weir.log.left_out=0`,
		},
		{
			weirhttp.Refusal{Status: 503, Err: &breaker.OpenError{Name: "api", Key: "k", State: breaker.ForcedOpen}},
			`level=INFO msg="request refused" event.name=weir.refusal weir.refusal.reason=open weir.breaker.name=api weir.breaker.state=forced_open weir.group.key=k http.response.status_code=503 client.address=192.0.2.1 http.route="GET /a" error.message="breaker \"api\" for \"k\" is forced open" weir.log.left_out=0`,
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
		l := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{policyPerMinute(1, weirhttp.ByNothing)}, OnRefusal: weirhttp.LogRefusedRequests(plainLogger(&out))})
		for range 1001 {
			request{}.send(l.Handler(okHandler))
		}
		require.Equal(t, 1, strings.Count(out.String(), "\n"))
		for _, leftOut := range []string{"999", "0"} {
			time.Sleep(time.Second)
			out.Reset()
			request{}.send(l.Handler(okHandler))
			require.Contains(t, out.String(), "weir.log.left_out="+leftOut)
		}
	})
}

func TestRefusalsOfManyGoroutinesAreLoggedOrCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer // guarded by the handler
		log := weirhttp.LogRefusedRequests(slog.New(slog.NewJSONHandler(&out, nil)))
		r := httptest.NewRequest(http.MethodGet, "/a", http.NoBody)
		var all sync.WaitGroup
		for n := range 8 {
			all.Go(func() {
				for i := range 500 {
					log(r, weirhttp.Refusal{Status: 429, Policies: []string{fmt.Sprint((n + i) % 7)}})
				}
			})
		}
		all.Wait()
		time.Sleep(time.Second)
		log(r, weirhttp.Refusal{Status: 429, Policies: []string{"last"}})
		told, records := 0, 0
		for decoder := json.NewDecoder(&out); decoder.More(); records++ {
			var line struct {
				LeftOut int `json:"weir.log.left_out"`
			}
			require.NoError(t, decoder.Decode(&line))
			told += 1 + line.LeftOut
		}
		require.Equal(t, 7+1, records, "one per limit, at one moment")
		require.Equal(t, 8*500+1, told)
	})
}

// Each of 40 limits refuses 5 requests at once, and again every 100ms for 10s. So every second has
// 10 records, of 10 limits, and each refusal is logged or counted as left out.
func TestLogRefusedRequestsShowsDifferentLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := weirhttp.LogRefusedRequests(slog.New(slog.NewJSONHandler(&out, nil)))
		r := httptest.NewRequest(http.MethodGet, "/a", http.NoBody)
		refusals := 0
		for range 100 {
			for n := range 200 {
				log(r, weirhttp.Refusal{Status: 429, Policies: []string{fmt.Sprint("limit", n%40)}})
				refusals++
			}
			time.Sleep(100 * time.Millisecond)
		}
		log(r, weirhttp.Refusal{Status: 429, Policies: []string{"last"}})
		refusals++
		told, last := 0, map[string]time.Time{}
		decoder := json.NewDecoder(&out)
		records := 0
		for ; decoder.More(); records++ {
			var line struct {
				Time    time.Time
				Limiter string `json:"weir.limiter.name"`
				LeftOut int    `json:"weir.log.left_out"`
			}
			require.NoError(t, decoder.Decode(&line))
			require.GreaterOrEqual(t, line.Time.Sub(last[line.Limiter]), time.Second, line.Limiter)
			last[line.Limiter] = line.Time
			told += 1 + line.LeftOut
		}
		require.Equal(t, 101, records)
		require.Equal(t, refusals, told)
	})
}
