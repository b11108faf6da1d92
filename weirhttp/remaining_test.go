package weirhttp_test

import (
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/weirhttp"
)

// allowedAfter returns how many requests a client sends after one response, and how long it then
// waits. Each request costs 10.
func allowedAfter(t *testing.T, c weirhttp.TransportConfig, header http.Header) (calls int, wait time.Duration) {
	t.Helper()
	gate := weir.New("api", weir.Config{Breaker: breaker.Config{CooldownJitter: breaker.Off}})
	first := true
	c.Base = baseFunc(func(*http.Request) (*http.Response, error) {
		resp := newResponse(http.StatusOK)
		if first {
			resp.Header = header
		}
		first = false
		return resp, nil
	})
	transport := weirhttp.NewTransport(weirhttp.ForAll(gate), c)
	for range 101 {
		req := newGet(t, "http://api/")
		ctx, _ := weir.WithCost(req.Context(), 10)
		resp, err := transport.RoundTrip(req.WithContext(ctx))
		if err != nil {
			return calls - 1, weir.RetryAfter(err)
		}
		require.NoError(t, resp.Body.Close())
		calls++
	}
	return calls - 1, 0
}

func TestTheTransportObeysWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(2 * 365 * 24 * time.Hour) // a Unix time has ten digits since 2001
		at := time.Now().Add(20 * time.Second)
		for name, c := range map[string]struct {
			header http.Header
			calls  int
			wait   time.Duration
		}{
			"nothing":             {http.Header{}, 100, 0},
			"draft 10":            {newHeader("RateLimit", `"a";r=3;t=20`), 3, 20 * time.Second},
			"the window":          {newHeader("RateLimit-Policy", `"a";q=9;w=30`, "RateLimit", `"a";r=3`), 3, 30 * time.Second},
			"the least":           {newHeader("RateLimit", `"a";r=50;t=20, "b";r=4;t=7`), 4, 7 * time.Second},
			"two fields":          {newHeader("RateLimit", `"a";r=5;t=20`, "RateLimit", `"b";r=6;t=7`), 5, 20 * time.Second},
			"another unit":        {newHeader("RateLimit-Policy", `"a";q=900;qu="tokens";w=60`, "RateLimit", `"a";r=25;t=20`), 2, 20 * time.Second},
			"requests":            {newHeader("RateLimit-Policy", `"a";q=900;qu="requests";w=60`, "RateLimit", `"a";r=25;t=20`), 25, 20 * time.Second},
			"no time":             {newHeader("RateLimit", `"a";r=0`), 100, 0},
			"malformed":           {newHeader("RateLimit", `"a;r=0;t=20`), 100, 0},
			"old":                 {newHeader("X-RateLimit-Remaining", "3", "X-RateLimit-Reset", "20"), 3, 20 * time.Second},
			"old with a date":     {newHeader("X-RateLimit-Remaining", "3", "X-RateLimit-Reset", strconv.FormatInt(at.Unix(), 10)), 3, 20 * time.Second},
			"requests and tokens": {newHeader("X-Ratelimit-Remaining-Requests", "9", "X-Ratelimit-Reset-Requests", "120ms", "X-Ratelimit-Remaining-Tokens", "75", "X-Ratelimit-Reset-Tokens", "6.5s"), 7, 6500 * time.Millisecond},
			"requests first":      {newHeader("X-Ratelimit-Remaining-Requests", "2", "X-Ratelimit-Reset-Requests", "30s", "X-Ratelimit-Remaining-Tokens", "75", "X-Ratelimit-Reset-Tokens", "6s"), 2, 30 * time.Second},
			"too long":            {newHeader("RateLimit", `"a";r=3;t=999999`), 3, time.Minute},
			"negative":            {newHeader("X-RateLimit-Remaining", "-5", "X-RateLimit-Reset", "20"), 0, 20 * time.Second},
			"in the past":         {newHeader("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1000000001"), 100, 0},
			"not a number":        {newHeader("X-RateLimit-Remaining", "NaN", "X-RateLimit-Reset", "20"), 100, 0},
			"no end":              {newHeader("X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "Inf"), 100, 0},
			"huge":                {newHeader("X-RateLimit-Remaining", "1e300", "X-RateLimit-Reset", "20"), 100, 0},
		} {
			calls, wait := allowedAfter(t, weirhttp.TransportConfig{ObeyRemaining: true}, c.header)
			require.Equal(t, c.calls, calls, name)
			require.Equal(t, c.wait, wait, name)
			calls, _ = allowedAfter(t, weirhttp.TransportConfig{}, c.header)
			require.Equal(t, 100, calls, "off: "+name)
			calls, _ = allowedAfter(t, weirhttp.TransportConfig{ObeyRemaining: true, MaxRetryAfter: breaker.Off}, c.header)
			require.Equal(t, 100, calls, "waits are off: "+name)
		}
	})
}
