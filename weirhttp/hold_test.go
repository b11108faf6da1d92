package weirhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

// everyGates returns gates of each kind. None refuses a call unless it is held.
func everyGates() map[string]gateFunc {
	rate := weir.Config{Rate: limiter.PerSecond(1000)}
	in := func(s breaker.State) weir.Config { return weir.Config{Breaker: breaker.Config{Force: s}} }
	full := weir.NewGroup[string]("http", weir.GroupConfig{MaxKeys: 1})
	_ = full.Get("busy").Run(context.Background(), func(context.Context) error { return errDown })
	return map[string]gateFunc{
		"per host":            gatePerHost(weir.Config{}),
		"per host, a rate":    gatePerHost(rate),
		"unlimited":           gatePerHost(weir.Config{Rate: limiter.Unlimited()}),
		"shadow breaker":      gatePerHost(in(breaker.Shadow)),
		"forced closed":       gatePerHost(in(breaker.ForcedClosed)),
		"disabled":            gatePerHost(in(breaker.Disabled)),
		"one":                 weirhttp.ForAll(weir.New("http", weir.Config{})),
		"joined":              weirhttp.ForAll(weir.Join("http", weir.Parts{Breaker: breaker.New("b", breaker.Config{})})),
		"a host without room": weirhttp.Per(full, weirhttp.ByHost),
	}
}

func TestRetryAfterOfAServerIsObeyed(t *testing.T) {
	healthy := func(*http.Response, error) breaker.Outcome { return breaker.Success }
	for name := range everyGates() {
		for _, classify := range []func(*http.Response, error) breaker.Outcome{nil, healthy} {
			for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
				synctest.Test(t, func(t *testing.T) {
					calls := 0
					transport := weirhttp.NewTransport(everyGates()[name], weirhttp.TransportConfig{
						Base: baseFunc(func(*http.Request) (*http.Response, error) {
							calls++
							return newResponse(status, "Retry-After", "5"), nil
						}),
						Classify: classify,
					})

					sendAllowed(t, transport, "http://a.example/")
					for range 3 {
						_, err := transport.RoundTrip(newGet(t, "http://a.example/"))
						require.Equalf(t, 1, calls, "%s, %d", name, status)
						held := weir.RetryAfter(err)
						require.GreaterOrEqual(t, held, 5*time.Second)
						require.Less(t, held, 5500*time.Millisecond)
						require.EqualError(t, err, fmt.Sprintf(`weirhttp: a.example is not called for %[1]v: "http": the service asked to wait, retry after %[1]v`, held.Round(time.Millisecond)))
						require.ErrorIs(t, err, weir.ErrRefused)
					}
					time.Sleep(5500*time.Millisecond + time.Millisecond)
					sendAllowed(t, transport, "http://a.example/")
					require.Equal(t, 2, calls)
				})
			}
		}
	}
}

func TestHoldAffectsOneHost(t *testing.T) {
	transport := weirhttp.NewTransport(gatePerHost(weir.Config{}), weirhttp.TransportConfig{Base: baseFunc(func(req *http.Request) (*http.Response, error) {
		if req.URL.Host == "busy.example" {
			return newResponse(http.StatusTooManyRequests, "Retry-After", "60"), nil
		}
		return newResponse(http.StatusOK), nil
	})})
	sendAllowed(t, transport, "http://busy.example/")
	for range 100 {
		sendAllowed(t, transport, "http://b.example/")
		_, err := transport.RoundTrip(newGet(t, "http://busy.example/"))
		require.ErrorIs(t, err, limiter.ErrLimited)
	}
}

// A server can hold a client for at most MaxRetryAfter. A malformed, negative or past wait does not
// hold it.
func TestRetryAfterOfAServerIsBounded(t *testing.T) {
	for _, c := range []struct {
		after  string
		bound  time.Duration
		wanted time.Duration
	}{
		{"31536000", 0, time.Minute}, // a year
		{"Fri, 31 Dec 9999 23:59:59 GMT", 0, time.Minute},
		{"9223372036854775807", 0, 0}, // later than any time.Time
		{"31536000", time.Hour, time.Hour},
		{"31536000", breaker.Off, 0},
		{"-5", 0, 0},
		{"0", 0, 0},
		{"1e9", 0, 0},
		{"Fri, 31 Dec 1999 23:59:59 GMT", 0, 0}, // one second ago
		{"Mon, 01 Jan 0001 00:00:00 GMT", 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) { // the time is midnight of 1 January 2000
			transport := weirhttp.NewTransport(gatePerHost(weir.Config{}), weirhttp.TransportConfig{
				Base:          alwaysRespond(http.StatusTooManyRequests, "Retry-After", c.after),
				MaxRetryAfter: c.bound,
			})

			sendAllowed(t, transport, "http://a.example/")
			resp, err := transport.RoundTrip(newGet(t, "http://a.example/"))
			require.GreaterOrEqual(t, weir.RetryAfter(err), c.wanted, c.after)
			require.LessOrEqual(t, weir.RetryAfter(err), c.wanted+c.wanted/10, c.after)
			if err == nil {
				require.NoError(t, resp.Body.Close())
			}
		})
	}
}

// The RetryAfter of a refusal by an inner transport is not from the service.
func TestRefusalOfAnInnerTransportIsNotARetryAfter(t *testing.T) {
	inner := weirhttp.NewTransport(gatePerHost(weir.Config{}), weirhttp.TransportConfig{Base: alwaysRespond(http.StatusTooManyRequests, "Retry-After", "60")})
	outer := weir.New("outer", weir.Config{})
	transport := weirhttp.NewTransport(weirhttp.ForAll(outer), weirhttp.TransportConfig{Base: baseFunc(func(req *http.Request) (*http.Response, error) {
		resp, err := inner.RoundTrip(req)
		if err == nil {
			resp.Header.Del("Retry-After")
		}
		return resp, err
	})})
	sendAllowed(t, transport, "http://a.example/")
	for range 3 {
		_, err := transport.RoundTrip(newGet(t, "http://a.example/"))
		require.ErrorContains(t, err, `"http": the service asked to wait`)
	}
	require.EqualValues(t, 3, outer.Totals().Ignored)
	require.Zero(t, outer.Stats().Refused)
}

// A cancelled request is ignored, whatever its error is.
func TestCancelledRequestsAreIgnored(t *testing.T) {
	for _, word := range []error{
		context.Canceled, io.ErrUnexpectedEOF, errDown, errors.New("http2: stream closed"),
		fmt.Errorf("proxy: %w", context.DeadlineExceeded), net.ErrClosed,
	} {
		gate := weir.New("g", weir.Config{})
		var leave func()
		transport := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{
			Base: baseFunc(func(*http.Request) (*http.Response, error) {
				leave()
				return nil, word
			}),
			Classify: func(*http.Response, error) breaker.Outcome { return breaker.Failure },
		})

		for range 40 {
			ctx, cancel := context.WithCancel(t.Context())
			leave = cancel
			_, err := transport.RoundTrip(newGet(t, "http://a.example/").WithContext(ctx))
			require.ErrorIs(t, err, word)
			cancel()
		}
		require.EqualValues(t, 40, gate.Totals().Ignored, word)
		require.Equal(t, breaker.Closed, gate.Breaker().State())
	}
}

func TestRequestsOfDisconnectedClientsAreIgnored(t *testing.T) {
	b := breaker.New("b", breaker.Config{})
	guard := guard(b, weirhttp.GuardConfig{Classify: func(*http.Request, int) breaker.Outcome { return breaker.Failure }})
	for _, end := range []func(w http.ResponseWriter){
		func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		func(w http.ResponseWriter) { w.WriteHeader(499) },
		func(http.ResponseWriter) {},
		func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		for range 40 {
			ctx, leave := context.WithCancel(t.Context())
			sendAndRecover(ctx, guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				leave()
				end(w)
			})))
		}
	}
	require.EqualValues(t, 160, b.Totals().Ignored)
	require.Equal(t, breaker.Closed, b.State())
}

// A service that is down and asks each caller to wait for a minute is called too seldom for
// MinCalls. Consecutive failures have no minimum, so they open the breaker.
func TestConsecutiveFailuresDetectAnOutageWithRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			config breaker.Config
			open   bool
		}{{breaker.Config{}, false}, {breaker.Config{ConsecutiveFailures: 3}, true}} {
			gate := weir.New("g", weir.Config{Breaker: c.config})
			transport := weirhttp.NewTransport(weirhttp.ForAll(gate), weirhttp.TransportConfig{Base: alwaysRespond(http.StatusServiceUnavailable, "Retry-After", "60")})
			opened := false
			for range 5 * 60 {
				if resp, err := transport.RoundTrip(newGet(t, "http://a.example/")); err == nil {
					require.NoError(t, resp.Body.Close())
				}
				opened = opened || gate.Tripped()
				time.Sleep(time.Second)
			}
			require.Equal(t, c.open, opened)
			require.Positive(t, gate.Stats().Refused)
		}
	})
}
