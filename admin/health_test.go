package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/admin"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

type healthAnswer struct {
	Ready   bool
	Causes  []string
	Error   string
	Objects []struct {
		Kind, Name, State string
		States            map[string]int
		Tripped           bool
		InFlight          *int `json:"in_flight"`
		MaxConcurrent     int  `json:"max_concurrent"`
		Firing            *int
	}
}

func newHealth(t *testing.T, c admin.HealthConfig, sources ...stat.Source) *admin.Health {
	h, err := admin.NewHealth(c, sources...)
	require.NoError(t, err)
	return h
}

func getHealth(t *testing.T, h http.Handler, path string) (status int, got healthAnswer) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, http.NoBody))
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
	return w.Code, got
}

func TestAnOpenBreakerDoesNotMakeTheProgramNotReady(t *testing.T) {
	b := breaker.New("b", breaker.Config{})
	h := newHealth(t, admin.HealthConfig{}, b)
	b.OpenFor(time.Hour)
	status, got := getHealth(t, h, "/ready")
	require.Equal(t, 200, status)
	require.True(t, got.Ready)
	status, got = getHealth(t, h, "/details")
	require.Equal(t, 200, status)
	require.Equal(t, "open", got.Objects[0].State)
	require.True(t, got.Objects[0].Tripped)
}

// A half-open breaker needs requests for its probes, so a program that waited for the breaker to
// close would never be ready again.
func TestOnlyNamedBreakersThatAreOpenMakeTheProgramNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		database, mail := weir.New("database", weir.Config{}), weir.New("mail", weir.Config{})
		h := newHealth(t, admin.HealthConfig{NotReady: []string{"database"}}, database, mail)
		mail.Breaker().OpenFor(time.Hour)
		status, _ := getHealth(t, h, "/ready")
		require.Equal(t, 200, status)
		database.Breaker().OpenFor(time.Minute)
		status, got := getHealth(t, h, "/ready")
		require.Equal(t, 503, status)
		require.Equal(t, []string{`gate "database" is open`}, got.Causes)
		status, got = getHealth(t, h, "/details")
		require.Equal(t, 200, status, "details are always served")
		require.False(t, got.Ready)
		time.Sleep(time.Minute)
		require.Equal(t, breaker.HalfOpen, database.Breaker().State())
		status, _ = getHealth(t, h, "/ready")
		require.Equal(t, 200, status)
		database.Breaker().Force(breaker.ForcedOpen, "")
		status, _ = getHealth(t, h, "/ready")
		require.Equal(t, 503, status)
	})
}

func TestDetailsOfBoundsAndGroups(t *testing.T) {
	hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{Gate: weir.Config{MaxConcurrent: 3}})
	hosts.Get("a").Breaker().OpenFor(time.Hour)
	hosts.Get("b")
	hosts.Get("c")
	slots := inflight.New(inflight.Config{Name: "slots", Limit: 2})
	_, err := slots.TryAcquire(t.Context())
	require.NoError(t, err)
	users := limiter.NewGroup(limiter.GroupConfig[string]{Name: "users", Rate: limiter.PerSecond(1)})
	users.Get("bob").Take(1)
	_, got := getHealth(t, newHealth(t, admin.HealthConfig{}, hosts, slots, users), "/details")
	require.Equal(t, map[string]int{"open": 1, "closed": 2}, got.Objects[0].States)
	require.Equal(t, 3, got.Objects[0].MaxConcurrent)
	require.Equal(t, 1, *got.Objects[1].InFlight)
	require.Equal(t, 2, got.Objects[1].MaxConcurrent)
	require.Nil(t, got.Objects[2].States)
}

func TestHealthRefusesOtherRequests(t *testing.T) {
	h := newHealth(t, admin.HealthConfig{})
	status, got := getHealth(t, h, "/live")
	require.Equal(t, 404, status)
	require.Contains(t, got.Error, "/ready and /details")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/ready", http.NoBody))
	require.Equal(t, 405, w.Code)
	require.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
}

func TestInvalidHealthConfigs(t *testing.T) {
	group := weir.NewGroup[string]("hosts", weir.GroupConfig{})
	for want, c := range map[string]admin.HealthConfig{
		`"databse", which is not a gate`:       {NotReady: []string{"databse"}},
		`"hosts", which is not a gate`:         {NotReady: []string{"hosts"}},
		"an empty name":                        {NotReady: []string{""}},
		"DrainDelay is -1s, must be from 0 to": {DrainDelay: -time.Second},
		"DrainDelay is 11m0s":                  {DrainDelay: 11 * time.Minute},
	} {
		_, err := admin.NewHealth(c, group)
		require.ErrorContains(t, err, want)
	}
	_, err := admin.NewHealth(admin.HealthConfig{}, nil)
	require.ErrorContains(t, err, "source 1 of 1 is nil")
}

func TestDrainIsNotReadyThenStopsThenWaitsForCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("g", weir.Config{MaxConcurrent: 3})
		h := newHealth(t, admin.HealthConfig{DrainDelay: time.Second}, g)
		permit, err := g.Allow(t.Context())
		require.NoError(t, err)
		start := time.Now()
		time.AfterFunc(time.Millisecond, func() {
			status, got := getHealth(t, h, "/ready")
			require.Equal(t, 503, status)
			require.Equal(t, []string{"the program is shutting down"}, got.Causes)
		})
		time.AfterFunc(3*time.Second+time.Millisecond, func() { permit.Record(t.Context(), nil, breaker.Success) })
		stopped := time.Duration(0)
		err = h.Drain(t.Context(), func(context.Context) error {
			stopped = time.Since(start)
			return errors.New("from stop")
		})
		require.EqualError(t, err, "from stop")
		require.Equal(t, time.Second, stopped, "requests are served until then")
		require.InDelta(t, 3*time.Second, time.Since(start), float64(50*time.Millisecond))
	})
}

func TestDrainIsBoundedByItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{Gate: weir.Config{MaxConcurrent: 3}})
		h := newHealth(t, admin.HealthConfig{}, hosts)
		for range 2 {
			_, err := hosts.Get("a").Allow(t.Context())
			require.NoError(t, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		start := time.Now()
		err := h.Drain(ctx)
		require.ErrorContains(t, err, "2 calls are in flight")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 7*time.Second, time.Since(start))

		stopped := false
		require.Error(t, h.Drain(ctx, func(context.Context) error { stopped = true; return nil }))
		require.True(t, stopped, "the functions are called even if there is no time")
	})
}
