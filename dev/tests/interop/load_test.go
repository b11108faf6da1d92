package interop_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/weirhttp"
)

// badService returns a handler that fails, panics, breaks off and stalls in turn, and sometimes
// works.
func badService() http.HandlerFunc {
	var turn atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch turn.Add(1) % 7 {
		case 0:
			w.WriteHeader(http.StatusInternalServerError)
		case 1:
			panic(http.ErrAbortHandler)
		case 2:
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, "and then no more")
		case 3:
			<-r.Context().Done()
		default:
			fmt.Fprint(w, strings.Repeat("x", 10_000))
		}
	}
}

// TestLoadLeavesNothingBehind runs clients that disconnect, time out, do not read responses, upload
// and stream, on a server that fails, stalls and breaks connections. When they are done, no
// connection, permit or goroutine may be left.
func TestLoadLeavesNothingBehind(t *testing.T) {
	inBothOrders(t, func(t *testing.T, p protocol, o wrapOrder) {
		s := serve(t, p, badService())
		gate := weir.New("shop", weir.Config{MaxConcurrent: 1000, Breaker: breaker.Config{FailureRate: 0.7, Cooldown: time.Millisecond, ProbeTimeout: time.Hour}})
		client := newTracedClientOf(o, weirhttp.TransportConfig{Base: s.Client().Transport, CountBodyFailures: true}, gate)

		var callers sync.WaitGroup
		for caller := range 8 {
			callers.Go(func() {
				for call := range 40 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(caller+2)*10*time.Millisecond)
					req, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader("some"))
					switch resp, err := client.Do(req); {
					case err != nil:
					case call%3 == 0:
						_ = resp.Body.Close()
					default:
						_, _ = bodyText(resp, nil)
					}
					cancel()
				}
			})
		}
		callers.Wait()

		require.Zero(t, metricOf(gate, "weir.inflight.call.active"), "permits")
		totals := gate.Totals()
		require.Positive(t, totals.Successes)
		require.Positive(t, totals.Failures)
		client.CloseIdleConnections()
		s.CloseClientConnections()
		s.Close()
		require.Zero(t, s.connections.Load(), "connections")
		// goleak checks the goroutines after all tests.
	})
}

// metricOf returns the value of a metric of b.
func metricOf(source stat.Source, name string) (n int64) {
	for s, v := range source.Observe {
		if s.Instrument.Name == name {
			n = int64(v)
		}
	}
	return n
}
