package notify_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert/notify"
)

// endlessBody is an endless response body that counts the bytes read.
type endlessBody struct{ read int }

func (e *endlessBody) Read(p []byte) (int, error) {
	e.read += len(p)
	return len(p), nil
}
func (*endlessBody) Close() error { return nil }

func (e *endlessBody) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: e, Request: r}, r.Body.Close()
}

func TestAtMost64KilobytesOfAnAnswerAreRead(t *testing.T) {
	var answer endlessBody
	hook := notify.NewWebhook(notify.Config{URL: "http://a.example", Transport: &answer})
	require.NoError(t, hook.Notify(t.Context(), firingAlert()))
	require.Equal(t, 64<<10, answer.read)
}

func TestHeaderOfMoreThan64KilobytesFails(t *testing.T) {
	for size, want := range map[int]bool{60 << 10: true, 70 << 10: false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", size))
		}))
		hook := notify.NewWebhook(notify.Config{URL: notify.Secret(server.URL)})
		err := hook.Notify(t.Context(), firingAlert())
		server.Close()
		require.Equal(t, want, err == nil, "%d bytes: %v", size, err)
	}
}
