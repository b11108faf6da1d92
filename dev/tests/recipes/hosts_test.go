package recipes_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/tests/recipes"
	"github.com/weir-go/weir/weirtest"
)

// failedShare makes 200 calls per second for a minute and returns the share that failed.
func failedShare(t *testing.T, run func(context.Context) error) (share float64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		const calls = 200 * 60
		failed := 0
		for range calls {
			if run(t.Context()) != nil {
				failed++
			}
			time.Sleep(time.Second / 200)
		}
		share = float64(failed) / calls
	})
	return share
}

// tenHosts returns ten addresses, and a call that fails at the fourth.
func tenHosts() (hosts []string, call func(ctx context.Context, host string) error) {
	for i := range 10 {
		hosts = append(hosts, fmt.Sprintf("10.0.0.%d:8080", i))
	}
	return hosts, func(_ context.Context, host string) error {
		if host == hosts[3] {
			return weirtest.ErrDown
		}
		return nil
	}
}

func TestOneGateForTenHostsLetsTenPercentFail(t *testing.T) {
	hosts, call := tenHosts()
	gate, next := weir.New("service", weir.Config{}), 0
	require.InDelta(t, 0.10, failedShare(t, func(ctx context.Context) error {
		next++
		return gate.Run(ctx, func(ctx context.Context) error { return call(ctx, hosts[next%len(hosts)]) })
	}), 0.001)
}

func TestAPoolSendsCallsToTheHostsThatWork(t *testing.T) {
	hosts, call := tenHosts()
	pool := recipes.Pool{Hosts: hosts, Gates: weir.NewGroup[string]("service", weir.GroupConfig{})}
	require.Less(t, failedShare(t, func(ctx context.Context) error { return pool.Run(ctx, call) }), 0.01)
}

func TestAPoolWhoseHostsAllFailRefusesCalls(t *testing.T) {
	hosts, _ := tenHosts()
	pool := recipes.Pool{Hosts: hosts, Gates: weir.NewGroup[string]("service", weir.GroupConfig{})}
	for range 200 {
		_ = pool.Run(t.Context(), func(context.Context, string) error { return weirtest.ErrDown })
	}
	weirtest.WantRefused(t, pool.Run(t.Context(), func(context.Context, string) error { return nil }), breaker.ErrOpen)
}

func TestAClientWithAGatePerHostRefusesOnlyTheHostThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := recipes.HostClient(roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "a.example" {
				return nil, weirtest.ErrDown
			}
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
		}))
		get := func(url string) error {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
			require.NoError(t, err)
			resp, err := client.Do(req)
			if err == nil {
				err = resp.Body.Close()
			}
			return err
		}
		for range 20 {
			require.Error(t, get("http://a.example/"))
			require.NoError(t, get("http://b.example/"))
		}
		require.ErrorIs(t, get("http://a.example/"), weir.ErrRefused)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
