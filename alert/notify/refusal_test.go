package notify_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
)

// A receiver refuses for a minute, as with an expired token or a misconfigured proxy.
func TestAlertArrivesSoonAfterAReceiverStopsRefusing(t *testing.T) {
	for _, code := range []int{301, 302, 304, 307, 400, 401, 403, 404, 405, 407, 409, 410, 413, 415, 418, 422, 451} {
		synctest.Test(t, func(t *testing.T) {
			server := newServer()
			server.replies(code)
			hook := notify.NewWebhook(notify.Config{URL: "http://a.example", Transport: server.transport})
			w := newSwitchedMonitor(t, hook, discardLogger())
			w.set(true)
			time.Sleep(time.Minute)
			require.Len(t, server.requests(), 1, "%d: slow retries", code)
			require.Equal(t, 1.0, w.metric("refused", ""), code)
			require.Zero(t, notify.BreakerOf(hook).Totals().Failures, "%d: a server that refuses an alert is healthy", code)
			server.replies(200)
			time.Sleep(5 * time.Minute)
			require.Equal(t, 1.0, w.metric("delivered", ""), code)
			require.Zero(t, w.metric("dropped", ""), code)
			w.stop()
			server.stop()
		})
	}
}

// An Alertmanager may be behind a proxy that limits the size of requests.
func TestRefusedBatchIsSentOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		got := map[string]bool{}
		arrived := func() int {
			mu.Lock()
			defer mu.Unlock()
			n := len(got)
			clear(got)
			return n
		}
		server := newServer()
		server.answer.Store(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if strings.Contains(string(body), `"key":"bad"`) {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for i := range 100 {
				if key := fmt.Sprint("k", i); strings.Contains(string(body), `"key":"`+key+`"`) {
					got[key] = true
				}
			}
		}))
		keys := map[string]int{"bad": 0}
		for i := range 100 {
			keys[fmt.Sprint("k", i)] = i
		}
		m := alert.NewMonitor(alert.Config{
			Logger: discardLogger(),
			Notify: []alert.Notifier{notify.NewAlertmanager(notify.Config{URL: "http://am.example", Transport: server.transport})},
		}, alert.Rule{Name: "x", When: alert.Above(0), Value: alert.Each(maps.All(keys), func(int) alert.Value {
			return alert.Bool(func() bool { return true })
		})})
		ctx, cancel := context.WithCancel(t.Context())
		go m.Run(ctx)
		time.Sleep(10 * time.Second)
		require.Equal(t, 100, arrived(), "all except the bad alert")
		time.Sleep(70 * time.Second)
		require.Equal(t, 100, arrived(), "repeats are on time")
		cancel()
		server.stop()
	})
}
