package recipes_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/tests/recipes"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
	"github.com/weir-go/weir/weirtest"
)

// returning makes a function with a value of one without.
func returning(call func(context.Context) error) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) { return 7, call(ctx) }
}

// tenFailures opens a breaker after ten failures.
var tenFailures = breaker.Config{ConsecutiveFailures: 10, FailureRun: breaker.Off, FailureRate: breaker.Off, Cooldown: time.Hour}

// failedCalls returns how many requests the service gets until the breaker opens.
func failedCalls(t *testing.T, retry func(context.Context, *weir.Gate, func(context.Context) (int, error)) (int, error)) int {
	t.Helper()
	var service weirtest.Service
	service.Always(weirtest.Answer{Err: weirtest.ErrDown})
	gate := weir.New("users", weir.Config{Breaker: tenFailures})
	for gate.Breaker().State() == breaker.Closed {
		_, err := retry(t.Context(), gate, returning(service.Call))
		require.Error(t, err)
	}
	return service.Calls()
}

func TestRetriesOutsideTheGateReachAFailingServiceLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outside, inside := failedCalls(t, recipes.Retry[int]), failedCalls(t, recipes.RetryInside[int])
		require.Equal(t, 10, outside, "each request is a call")
		require.Equal(t, 4*10, inside, "each of the ten calls makes four attempts")
	})
}

func TestRetriesInsideTheGateHideFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var service weirtest.Service
		inside, outside := weir.New("inside", weir.Config{}), weir.New("outside", weir.Config{})
		for range 10 {
			service.Next(1, weirtest.Answer{Err: weirtest.ErrDown})
			_, err := recipes.RetryInside(t.Context(), inside, returning(service.Call))
			require.NoError(t, err)
			service.Next(1, weirtest.Answer{Err: weirtest.ErrDown})
			_, err = recipes.Retry(t.Context(), outside, returning(service.Call))
			require.NoError(t, err)
		}
		require.Zero(t, inside.Totals().Failures)
		require.EqualValues(t, 10, outside.Totals().Failures)
	})
}

func TestARefusedAttemptWaitsAndIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var service weirtest.Service
		gate := weir.New("users", weir.Config{})
		gate.Breaker().OpenFor(5 * time.Second)
		start := time.Now()
		v, err := recipes.Retry(t.Context(), gate, returning(service.Call))
		require.NoError(t, err)
		require.Equal(t, 7, v)
		require.Equal(t, 5*time.Second, time.Since(start))
		require.Equal(t, 1, service.Calls(), "a refused attempt does not reach the service")
	})
}

func TestAWaitThatIsTooLongEndsTheRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var service weirtest.Service
		gate := weir.New("users", weir.Config{})
		gate.Breaker().OpenFor(time.Minute)
		start := time.Now()
		_, err := recipes.Retry(t.Context(), gate, returning(service.Call))
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.Equal(t, time.Minute, weir.RetryAfter(err))
		require.Zero(t, time.Since(start))
	})
}

func TestACallThatIsNeverAllowedEndsTheRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := weir.New("users", weir.Config{Rate: limiter.PerSecond(1)})
		start := time.Now()
		_, err := recipes.Retry(t.Context(), gate, func(context.Context) (int, error) {
			require.NoError(t, gate.Reconfigure(weir.Config{Rate: limiter.PerSecond(1), Burst: limiter.Off}))
			return 0, weirtest.ErrDown
		})
		weirtest.WantRefused(t, err, limiter.ErrLimited)
		require.Equal(t, limiter.Never, weir.RetryAfter(err))
		require.Less(t, time.Since(start), time.Second, "one wait of backoff, before the second attempt")
	})
}

// busyError is an error of a service that says when to come back.
type busyError struct{ wait time.Duration }

func (e busyError) Error() string             { return "busy" }
func (e busyError) RetryAfter() time.Duration { return e.wait }

func TestTheWaitOfAServiceIsThatOfTheRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var service weirtest.Service
		service.Next(1, weirtest.Answer{Err: busyError{3 * time.Second}})
		start := time.Now()
		_, err := recipes.Retry(t.Context(), weir.New("users", weir.Config{}), returning(service.Call))
		require.NoError(t, err)
		require.Equal(t, 3*time.Second, time.Since(start))
	})
}

func TestARetryingClientWaitsForTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 20 { // the gate draws how long it holds
			var service weirtest.Service
			service.Next(1, weirtest.Answer{Status: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"5"}}})
			client := recipes.NewRetryingClient(weirhttp.ForAll(weir.New("users", weir.Config{})), &service)
			client.Logger = nil
			start := time.Now()
			resp, err := client.Get("http://users")
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, 2, service.Calls())
			require.Equal(t, 5500*time.Millisecond, time.Since(start))
		}
	})
}

func TestARetryingClientDoesNotRetryARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var service weirtest.Service
		service.Always(weirtest.Answer{Err: weirtest.ErrDown})
		gate := weir.New("users", weir.Config{Breaker: tenFailures})
		base := &pooled{RoundTripper: &service}
		client := recipes.NewRetryingClient(weirhttp.ForAll(gate), base)
		client.Logger = nil
		var err error
		for range 10 {
			var resp *http.Response
			resp, err = client.Get("http://users")
			require.Nil(t, resp) //nolint:bodyclose // there is none
			if errors.Is(err, weir.ErrRefused) {
				break
			}
		}
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.Equal(t, 10, service.Calls())
		start := time.Now()
		_, err = client.Get("http://users") //nolint:bodyclose // there is no response
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.Zero(t, time.Since(start))
		require.Greater(t, weir.RetryAfter(err), 59*time.Minute)
		require.Equal(t, 10, service.Calls())
		require.False(t, base.closed, "a refusal closes the connections to other hosts")
	})
}

// pooled is a transport that keeps connections.
type pooled struct {
	http.RoundTripper
	closed bool
}

func (p *pooled) CloseIdleConnections() { p.closed = true }
