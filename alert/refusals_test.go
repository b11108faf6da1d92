package alert_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/weirhttp"
)

func failCall(context.Context) error { return errDown }

func succeed(context.Context) error { return nil }

// tenAnHour allows ten calls per hour.
func tenAnHour() limiter.Rate { return limiter.Per(10, time.Hour) }

func TestRefusalsOfAGateIncludeBreakerAndLimiter(t *testing.T) {
	gate := weir.New("payments", weir.Config{Rate: tenAnHour(), Burst: 10, Breaker: breaker.Config{MinCalls: 10}})
	v := newValueReader(alert.Refusals(gate, time.Minute))
	v.require(t, 0, 0)
	for i := range 19 {
		err := gate.Run(t.Context(), succeed)
		require.Equal(t, i >= 10, errors.Is(err, weir.ErrRefused))
	}
	v.require(t, s, 9) // by the limiter
	gate.Breaker().Force(breaker.ForcedOpen, "")
	for range 4 {
		require.ErrorIs(t, gate.Run(t.Context(), succeed), weir.ErrRefused)
	}
	v.require(t, 2*s, 13) // and by the breaker
	v.require(t, 2*time.Minute, 0)
}

func TestRefusalsOfEveryKindOfSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: tenAnHour(), Burst: 10, Name: "bucket"})
		users := limiter.NewGroup(limiter.GroupConfig[string]{Rate: tenAnHour(), Burst: 10, Name: "users"})
		gates := weir.NewGroup[string]("hosts", weir.GroupConfig{Gate: weir.Config{Rate: tenAnHour(), Burst: 10}})
		breakers := breaker.NewGroup[string]("shards", breaker.GroupConfig{Breaker: breaker.Config{MinCalls: 10}, MaxSeries: 1})
		for _, key := range []string{"a", "b"} {
			require.NoError(t, breakers.Get(key).Run(t.Context(), succeed))
		}
		search := throttle.New("search", throttle.Config{})
		hosts := weir.NewGroup[string]("web", weir.GroupConfig{Gate: weir.Config{Rate: tenAnHour(), Burst: 10}})
		client := &http.Client{Transport: weirhttp.NewTransport(weirhttp.Per(hosts, weirhttp.ByHost), weirhttp.TransportConfig{Base: anyHostServer{}})}
		for name, c := range map[string]struct {
			of   stat.Source
			call func(key string) error
			want float64
		}{
			"limiter":            {bucket, func(string) error { return refusalError(bucket.Take(1).OK) }, 13},
			"group of limiters":  {users, func(key string) error { return refusalError(users.Get(key).Take(1).OK) }, 3},
			"group of gates":     {gates, func(key string) error { return gates.Get(key).Run(t.Context(), succeed) }, 3},
			"group of breakers":  {breakers, func(key string) error { return breakers.Get(key).Run(t.Context(), failCall) }, 5},
			"throttle":           {search, func(string) error { return search.Run(t.Context(), failCall) }, someRefused},
			"gates of a client":  {hosts, func(key string) error { return getFromHost(t.Context(), client, key) }, 3},
			"monitor, which has": {alert.NewMonitor(alert.Config{}), func(string) error { return nil }, 0},
		} {
			v := newValueReader(alert.Refusals(c.of, time.Minute))
			v.require(t, 0, 0)
			refused := 0.0
			for i := range 23 { // 12 of one key and 11 of another
				if errors.Is(c.call([]string{"a", "b"}[i%2]), weir.ErrRefused) {
					refused++
				}
			}
			if c.want == someRefused {
				require.Positive(t, refused, name)
			} else {
				require.Equal(t, c.want, refused, name)
			}
			v.require(t, s, refused)
		}
	})
}

// someRefused replaces the number of refusals of a source that refuses at random.
const someRefused = -1

// anyHostServer answers requests to every host.
type anyHostServer struct{}

func (anyHostServer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

// getFromHost sends a request to the host.
func getFromHost(ctx context.Context, client *http.Client, host string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+".example/", http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err == nil {
		_ = response.Body.Close()
	}
	return err
}

// refusalError returns an error if the result is a refusal.
func refusalError(ok bool) error {
	if ok {
		return nil
	}
	return weir.ErrRefused
}

// When a key is evicted, its series disappear, so the sum over the group falls.
func TestRefusalsAreNotCountedAgainAfterAnEviction(t *testing.T) {
	gates := weir.NewGroup[string]("hosts", weir.GroupConfig{})
	refuse := func(key string, calls int) {
		gates.Get(key).Breaker().Force(breaker.ForcedOpen, "")
		for range calls {
			require.ErrorIs(t, gates.Get(key).Run(t.Context(), succeed), weir.ErrRefused)
		}
	}
	v := newValueReader(alert.Refusals(gates, time.Minute))
	v.require(t, 0, 0)
	refuse("a", 30)
	refuse("b", 4)
	v.require(t, s, 34)
	v.require(t, 2*time.Minute, 0)
	require.True(t, gates.Forget("b"))
	v.require(t, 2*time.Minute+s, 0)
	refuse("b", 5)
	v.require(t, 2*time.Minute+2*s, 5)
}

// refusedCounter is a source with one count of refused calls.
type refusedCounter struct {
	series *stat.Series
	value  float64
}

func (c *refusedCounter) Observe(yield func(*stat.Series, float64) bool) { yield(c.series, c.value) }

func TestInvalidCountsAreNotRefusals(t *testing.T) {
	for _, odd := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, math.MaxFloat64} {
		c := &refusedCounter{value: 100}
		for s := range breaker.New("b", breaker.Config{}).Observe {
			if s.Instrument.Name == "weir.breaker.calls" && s.Values[1] == "refused" {
				c.series = s
			}
		}
		require.NotNil(t, c.series)
		v := newValueReader(alert.Refusals(c, time.Minute))
		v.require(t, 0, 0)
		c.value = odd
		v.require(t, s, 0)
		c.value = 103
		v.require(t, 2*s, 3)
		c.value = 2 // the counter started again
		v.require(t, 3*s, 5)
	}
}
