package recipes_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/test/bufconn"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/admin"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/tests/recipes"
)

func TestAServerDrainsWithoutLosingARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		payments := weir.New("payments", weir.Config{})
		health, err := admin.NewHealth(admin.HealthConfig{}, payments)
		require.NoError(t, err)
		mux := http.NewServeMux()
		recipes.Routes(mux, health)
		mux.HandleFunc("/slow", func(http.ResponseWriter, *http.Request) { time.Sleep(8 * time.Second) })

		listener := bufconn.Listen(1 << 16)
		ctx, sigterm := context.WithCancel(t.Context())
		began, served := time.Now(), make(chan error, 1)
		go func() {
			served <- recipes.Serve(ctx, listener, &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}, health)
		}()
		client := &http.Client{Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return listener.DialContext(ctx) },
		}}
		get := func(path string) int {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://shop.example"+path, http.NoBody)
			require.NoError(t, err)
			resp, err := client.Do(req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			return resp.StatusCode
		}

		payments.Breaker().Force(breaker.ForcedOpen, "test")
		require.Equal(t, 200, get("/health/ready"), "an open breaker does not make the program not ready")
		sigterm()
		synctest.Wait()
		require.Equal(t, 503, get("/health/ready"))
		require.Equal(t, 200, get("/slow"), "requests are served during the delay, and end")
		require.NoError(t, <-served)
		require.GreaterOrEqual(t, time.Since(began), 8*time.Second)
		require.Less(t, time.Since(began), 25*time.Second)
	})
}
