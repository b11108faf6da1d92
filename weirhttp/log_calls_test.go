package weirhttp_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/weirhttp"
)

func TestLogRefusedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		transport := weirhttp.NewTransport(gatePerHost(opensAfterOneFailure()), weirhttp.TransportConfig{
			Base:      alwaysRespond(500),
			OnRefusal: weirhttp.LogRefusedCalls(slog.New(slog.NewTextHandler(&out, nil))),
		})

		const secret = "https://me:secret@a.example/secret?token=secret"
		sendAllowed(t, transport, secret)
		for range 15 {
			_, err := transport.RoundTrip(newGet(t, secret))
			require.ErrorIs(t, err, breaker.ErrOpen)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Len(t, lines, 1, "one per second of the same breaker and key")
		require.Equal(t, `time=2000-01-01T00:00:00.000Z level=WARN msg="call refused" event.name=weir.refusal weir.refusal.reason=open`+
			` weir.breaker.name=http weir.breaker.state=open weir.group.key=a.example weir.retry_after=60 weir.host=a.example http.request.method=GET`+
			` error.message="breaker \"http\" for \"a.example\" is open until 00:01:00: 1 failures in a row, limit 1" weir.log.left_out=0`, lines[0])
		require.NotContains(t, out.String(), "secret")

		for _, leftOut := range []string{"14", "0"} {
			time.Sleep(time.Second)
			out.Reset()
			_, err := transport.RoundTrip(newGet(t, secret))
			require.Error(t, err)
			require.Contains(t, out.String(), "weir.log.left_out="+leftOut)
		}
	})
}

func TestAttributesOfARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until := time.Now().Add(time.Second)
		for want, err := range map[string]error{
			`limited weir.limiter.name=api weir.retry_after=1 weir.host=a.example`:                    &limiter.LimitedError{Name: "api", Until: until},
			`held weir.limiter.name=api weir.retry_after=1 weir.host=a.example`:                       &limiter.LimitedError{Name: "api", Until: until, Reason: limiter.Held},
			`limited weir.limiter.name=api weir.host=a.example`:                                       &limiter.LimitedError{Name: "api"},
			`limited weir.limiter.name=slots weir.retry_after=1 weir.host=a.example`:                  &inflight.FullError{Name: "slots", Until: until},
			`limited weir.limiter.name=full weir.host=a.example`:                                      &inflight.FullError{Name: "full"},
			`open weir.breaker.name=b weir.breaker.state=open weir.retry_after=1 weir.host=a.example`: &breaker.OpenError{Name: "b", State: breaker.Open, Until: until},
			`hopeless weir.limiter.name=api weir.`:                                                    &weir.HopelessError{Name: "api"},
			`throttled weir.`:                                                                         throttle.ErrRefused,
			`limited weir.host=a.example`:                                                             weir.ErrRefused,
		} {
			var out bytes.Buffer
			weirhttp.LogRefusedCalls(plainLogger(&out))(newGet(t, "https://a.example/"), &weirhttp.RefusedError{Host: "a.example", Err: err})
			require.Contains(t, out.String(), "event.name=weir.refusal weir.refusal.reason="+want)
		}
		never := &weirhttp.RefusedError{Host: "a.example", Err: &limiter.LimitedError{Name: "api"}}
		require.EqualError(t, never, "weirhttp: a.example is not called: limiter api: ")
		soon := &weirhttp.RefusedError{Host: "a.example", Err: &limiter.LimitedError{Until: time.Now().Add(time.Microsecond)}}
		require.ErrorContains(t, soon, "is not called for 1ms")
	})
}
