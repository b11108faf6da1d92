package weirhttp_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/weirhttp"
)

// The Timeout of a client is a deadline of the context of its requests.
func TestTransportRefusesRequestsWithTooLittleTime(t *testing.T) {
	inBubble(t, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(50 * time.Millisecond)
		w.WriteHeader(http.StatusOK)
	}, func(t *testing.T, base http.RoundTripper) {
		for name, gate := range map[string]gateFunc{
			"one gate": weirhttp.ForAll(weir.New("api", weir.Config{RefuseHopeless: true})),
			"per host": gatePerHost(weir.Config{RefuseHopeless: true}),
		} {
			var logged strings.Builder
			client := &http.Client{Transport: weirhttp.NewTransport(gate, weirhttp.TransportConfig{
				Base: base, OnRefusal: weirhttp.LogRefusedCalls(slog.New(slog.NewTextHandler(&logged, nil))),
			})}
			get := func(timeout time.Duration) error {
				client.Timeout = timeout
				_, err := bodyText(client.Do(newGet(t, "http://a.example/")))
				return err
			}
			for range 60 {
				require.NoError(t, get(time.Second), name)
			}
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			require.NotErrorIs(t, get(10*time.Millisecond), weir.ErrRefused, "%s: one per second is sent", name)
			err := get(10 * time.Millisecond)
			var hopeless *weir.HopelessError
			require.ErrorAs(t, err, &hopeless, name)
			require.ErrorIs(t, err, weir.ErrRefused, name)
			require.Equal(t, time.Second, weir.RetryAfter(err), name)
			require.Contains(t, logged.String(), "weir.limiter.name="+hopeless.Name)
			require.NoError(t, get(60*time.Millisecond), name)
		}
	})
}
