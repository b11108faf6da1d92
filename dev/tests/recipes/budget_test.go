package recipes_test

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/tests/recipes"
	"github.com/weir-go/weir/weirhttp"
	"github.com/weir-go/weir/weirtest"
)

const (
	firstCalls = 100
	retryShare = 0.1
	retryBurst = 10
)

// budgetedGate returns a gate whose retry budget alone bounds the calls.
func budgetedGate() *weir.Gate {
	never := breaker.Config{FailureRate: breaker.Off, FailureRun: breaker.Off}
	return weir.New("users", weir.Config{RetryShare: retryShare, RetryBurst: retryBurst, Breaker: never})
}

// arrivals are the attempts that a service gets, counted by how many came before them.
type arrivals struct {
	by    map[int]int
	fails func(first, attempt int) bool
}

func (a *arrivals) total() (n int) {
	for _, some := range a.by {
		n += some
	}
	return n
}

// arrive counts an attempt and reports whether it fails.
func (a *arrivals) arrive(attempt int) bool {
	a.by[attempt]++
	return a.fails(a.by[0], attempt)
}

// clientOf returns a function that makes a call to the service.
type clientOf func(*testing.T, *weir.Gate, *arrivals) func() error

// retrying makes a client of a function that retries.
func retrying(retry func(context.Context, *weir.Gate, func(context.Context) (int, error)) (int, error)) clientOf {
	return func(t *testing.T, gate *weir.Gate, service *arrivals) func() error {
		t.Helper()
		return func() error {
			_, err := retry(t.Context(), gate, func(ctx context.Context) (int, error) {
				if service.arrive(weir.Attempt(ctx)) {
					return 0, weirtest.ErrDown
				}
				return 7, nil
			})
			return err
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// retryingHTTP returns a client whose service answers a failed request with the status, or not at
// all if the status is 0.
func retryingHTTP(code int) clientOf {
	return func(t *testing.T, gate *weir.Gate, service *arrivals) func() error {
		t.Helper()
		client := recipes.NewRetryingClient(weirhttp.ForAll(gate), roundTripper(func(req *http.Request) (*http.Response, error) {
			var answer weirtest.Service
			n, _ := strconv.Atoi(req.Header.Get("X-Envoy-Attempt-Count"))
			if service.arrive(max(n, 1) - 1) {
				answer.Always(weirtest.Answer{Status: code})
				if code == 0 {
					answer.Always(weirtest.Answer{Err: weirtest.ErrDown})
				}
			}
			return answer.RoundTrip(req)
		}))
		client.Logger = nil
		return func() error {
			resp, err := client.Get("http://users")
			if err != nil {
				return err
			}
			return resp.Body.Close()
		}
	}
}

// retryingGRPC returns a client that reads from the metadata which calls are retries.
func retryingGRPC(dial dialer) clientOf {
	return func(t *testing.T, gate *weir.Gate, service *arrivals) func() error {
		t.Helper()
		conn := connectGRPC(t, gate, dial, func(stream grpc.ServerStream) error {
			attempt := 0
			if before := metadata.ValueFromIncomingContext(stream.Context(), "grpc-previous-rpc-attempts"); len(before) > 0 {
				attempt, _ = strconv.Atoi(before[0])
			}
			if service.arrive(attempt) {
				return status.Error(codes.Unavailable, "down")
			}
			return stream.SendMsg(new(emptypb.Empty))
		})
		return func() error { return invoke(t, conn) }
	}
}

// budgetedClients are the recipes whose retries are bounded.
var budgetedClients = map[string]clientOf{
	"backoff":             retrying(recipes.Retry[int]),
	"failsafe-go":         retrying(recipes.FailsafeRetry[int]),
	"go-retryablehttp":    retryingHTTP(0),
	"retryablehttp, 500":  retryingHTTP(http.StatusInternalServerError),
	"gRPC interceptor":    retryingGRPC(recipes.DialOutside),
	"gRPC service config": retryingGRPC(recipes.DialRetrying),
}

// eachClient runs a test with each client, and a service whose attempts fail.
func eachClient(t *testing.T, fails func(first, attempt int) bool, test func(t *testing.T, name string, call func() error, service *arrivals)) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(budgetedClients)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service := &arrivals{by: map[int]int{}, fails: fails}
				test(t, name, budgetedClients[name](t, budgetedGate(), service), service)
			})
		})
	}
}

func TestRetriesToAServiceThatIsDownAreBounded(t *testing.T) {
	down := func(int, int) bool { return true }
	eachClient(t, down, func(t *testing.T, name string, call func() error, service *arrivals) {
		for range firstCalls {
			err := call()
			require.Error(t, err)
			require.NotErrorIs(t, err, weir.ErrRefused, "the error is that of the service")
			require.Regexp(t, "down|500|Unavailable", err.Error())
		}
		require.Equal(t, firstCalls, service.by[0])
		most, all := firstCalls*(1+retryShare)+retryBurst, float64(service.total())
		require.LessOrEqual(t, all, most)
		if name != "gRPC service config" { // there only successes allow further retries
			require.Greater(t, all, most-2, "tokens are not lost")
		}
	})
}

func TestRetriesOfFewFailuresSucceed(t *testing.T) {
	few := func(first, attempt int) bool { return attempt == 0 && first%20 == 0 }
	eachClient(t, few, func(t *testing.T, _ string, call func() error, service *arrivals) {
		for range firstCalls {
			require.NoError(t, call())
		}
		require.Equal(t, map[int]int{0: firstCalls, 1: firstCalls / 20}, service.by)
	})
}

// Attempts that an open breaker refused never reached the service, so the first that does is no
// retry. Otherwise the budget would refuse all callers that have waited for the breaker.
func TestAttemptsThatTheBreakerRefusedAreNoRetries(t *testing.T) {
	for name, retry := range map[string]clientOf{"backoff": retrying(recipes.Retry[int]), "gRPC interceptor": retryingGRPC(recipes.DialOutside)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service := &arrivals{by: map[int]int{}, fails: func(int, int) bool { return false }}
				gate := budgetedGate()
				call := retry(t, gate, service)
				for range 2 * retryBurst {
					gate.Breaker().OpenFor(500 * time.Millisecond)
					require.NoError(t, call())
				}
				require.Equal(t, map[int]int{0: 2 * retryBurst}, service.by)
			})
		})
	}
}
