package recipes_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/dev/tests/recipes"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/weirtest"
	"github.com/weir-go/weir/window"
)

// events serves two events, and then ends as told.
func events(t *testing.T, end func()) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: 1\ndata: 2\n")
		_ = http.NewResponseController(w).Flush()
		end()
	}))
	t.Cleanup(server.Close)
	return server
}

func breakOff() { panic(http.ErrAbortHandler) }

func openURL(client *http.Client, url string) func(context.Context) (io.ReadCloser, error) {
	return func(ctx context.Context) (io.ReadCloser, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return nil, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return nil, err
		}
		return resp.Body, nil
	}
}

func TestABodyThatBreaksOffIsOneMoreFailedCall(t *testing.T) {
	gate := weir.New("events", weir.Config{MaxConcurrent: 1})
	server := events(t, breakOff)
	body, err := openURL(recipes.StreamClient(gate, server.Client().Transport), server.URL)(t.Context())
	require.NoError(t, err)
	defer body.Close()
	require.Equal(t, window.Totals{Successes: 1}, gate.Totals(), "the headers have arrived")
	permit, err := gate.Allow(t.Context())
	require.NoError(t, err, "the body occupies no slot")
	permit.Done(t.Context(), nil)
	_, err = io.ReadAll(body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, window.Totals{Successes: 2, Failures: 1, ConsecutiveFailures: 1}, gate.Totals())
}

func TestAStreamIsOneCall(t *testing.T) {
	for name, c := range map[string]struct {
		end  func()
		err  error
		want window.Totals
	}{
		"it ends":       {end: func() {}, want: window.Totals{Successes: 1}},
		"it breaks off": {end: breakOff, err: io.ErrUnexpectedEOF, want: window.Totals{Failures: 1, ConsecutiveFailures: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			gate := weir.New("events", weir.Config{MaxConcurrent: 1})
			server := events(t, c.end)
			open := openURL(server.Client(), server.URL)
			var lines []string
			err := recipes.Follow(t.Context(), gate, open, func(line string) {
				lines = append(lines, line)
				_, err := gate.Allow(t.Context())
				weirtest.WantRefused(t, err, inflight.ErrFull)
			})
			require.ErrorIs(t, err, c.err)
			require.Equal(t, []string{"data: 1", "data: 2"}, lines)
			require.Equal(t, c.want, gate.Totals())
		})
	}
}

func TestAStreamThatItsCallerCancelsIsIgnored(t *testing.T) {
	gate := weir.New("events", weir.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	server := events(t, func() { <-ctx.Done() })
	err := recipes.Follow(ctx, gate, openURL(server.Client(), server.URL), func(string) { cancel() })
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, window.Totals{Ignored: 1}, gate.Totals())
}
