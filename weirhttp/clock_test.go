package weirhttp_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/weirhttp"
)

// A limit in a package variable is made and used with the real clock, and used in bubbles. Each
// bubble begins in the year 2000.
func TestWindowsBeginAgainWhenTheClockGoesBack(t *testing.T) {
	for _, n := range []int{3, 40} { // of spans of one request each, and of longer ones
		// One key has room, and another is counted by its network, which also is a window.
		p := policyPerWindow(n, time.Hour, byAPIKey)
		p.MaxKeys = 1
		h := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{p}}).Handler(okHandler)
		requireQuota := func(t *testing.T) {
			t.Helper()
			for _, key := range []string{"first", "second"} {
				passed := 0
				for range n + 2 {
					if w := (request{key: key}).send(h); w.Code == http.StatusOK {
						passed++
					} else {
						wait, err := time.ParseDuration(w.Header().Get("Retry-After") + "s")
						require.NoError(t, err)
						require.LessOrEqual(t, wait, time.Hour+time.Hour/16)
					}
				}
				require.Equal(t, n, passed, key)
			}
		}
		for i := range 8 {
			if i%3 != 2 { // otherwise one bubble follows another
				requireQuota(t)
			}
			synctest.Test(t, func(t *testing.T) {
				requireQuota(t)
				for range 3 {
					time.Sleep(time.Hour + time.Hour/16)
					requireQuota(t)
				}
			})
		}
	}
}

func TestRefusalsAreLoggedWhenTheClockGoesBack(t *testing.T) {
	var out bytes.Buffer
	log := weirhttp.LogRefusedCalls(slog.New(slog.NewTextHandler(&out, nil)))
	refuse := func() {
		log(newGet(t, "http://host/"), &weirhttp.RefusedError{Host: "host", Err: breaker.ErrOpen})
	}
	for range 3 {
		synctest.Test(t, func(*testing.T) {
			for range 12 {
				refuse()
				time.Sleep(time.Second)
			}
		})
		refuse()
	}
	require.GreaterOrEqual(t, bytes.Count(out.Bytes(), []byte("\n")), 3*12+1)
}
