package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/dashboard"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/weirhttp"
)

func TestErrorClassesAreWords(t *testing.T) {
	for kind, want := range map[string]string{
		"*net.OpError": "network error", "context.deadlineExceededError": "timeout", "panic": "panic", "error": "error",
		"*payments.CardDeclinedError": "card declined error", "*pq.Error": "pq error",
		"quota.exceeded": "exceeded error", "card declined": "card declined", "shop.List[int]": "shop.List[int]", "result": "failed result",
	} {
		require.Equal(t, want, dashboard.ErrorClass(kind), kind)
	}
}

func TestDurationsAreRoundedForPeople(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 12: "12 ns", 200893 * time.Microsecond: "201 ms", 203 * time.Millisecond: "203 ms", 999600 * time.Microsecond: "1 s",
		1234 * time.Millisecond: "1.23 s", 59990 * time.Millisecond: "1 min", 125 * time.Second: "2 min 5 s", time.Hour: "1 h",
		26*time.Hour + 29*time.Minute: "26 h 29 min", 50 * time.Hour: "2 d 2 h", 999600 * time.Nanosecond: "1 ms", 1500 * time.Nanosecond: "1.5 µs",
	} {
		require.Equal(t, want, dashboard.PlainDuration(d), "%v", d)
	}
	require.Equal(t, "the cooldown of 1 min 30 s is over, 25m0 and h2s stay", dashboard.WithPlainDurations("the cooldown of 1m30s is over, 25m0 and h2s stay"))
}

func TestFailuresAreShownInWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := weir.New("bank", weir.Config{Breaker: breaker.Config{MinCalls: 1, SlowCall: time.Second}})
		page := newDefaultPage(gate)
		_ = gate.Run(t.Context(), func(context.Context) error {
			time.Sleep(200893 * time.Microsecond)
			return fmt.Errorf("pay: %w after 1.234567891s, retry in 9m59.9991s of 30s", &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("refused\nby pool-5m")})
		})
		r := getSnapshot(t, page).row(t, "bank")
		require.Equal(t, "network error after 201 ms: pay: dial tcp: refused by pool-5m after 1.23 s, retry in 10 min of 30s", r.LastError)
		require.Equal(t, time.Now().UnixMilli(), *r.LastErrorAt)
	})
}

// fleetLimit is a source as a limiter of package fleet, which is a module of its own.
type fleetLimit struct{ stat.Source }

func (fleetLimit) Limit() (limiter.Rate, int) { return limiter.PerSecond(100), 25 }

func TestALimitIsShownAsItWasConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(100), Burst: 25, Name: "bucket"})
		log := limiter.NewSlidingLog(limiter.WindowConfig{Limit: 25, Window: 250 * time.Millisecond, Name: "log"})
		gate := weir.New("gate", weir.Config{Rate: limiter.Per(10, time.Minute), Burst: 3})
		group := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerMinute(60), Burst: 2, Name: "group"})
		gates := weir.NewGroup[string]("gates", weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(100), Burst: 25}})
		joined := weir.Join("joined", weir.Parts{Breaker: breaker.New("bank", breaker.Config{}), Limiter: limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(100), Burst: 25})})
		policies := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{{Name: "policy", By: weirhttp.ByIP, Rate: limiter.PerMinute(60), Burst: 2}}})
		fleet := limiter.NewSlidingLog(limiter.WindowConfig{Limit: 25, Window: time.Minute, Name: "fleet"})
		page := newDefaultPage(bucket, log, gate, group, gates, joined, policies, fleetLimit{fleet})
		getSnapshot(t, page)
		for range 30 {
			bucket.Take(1)
			log.Take(1)
			fleet.Take(1)
			group.Get("a").Take(1)
		}
		for _, g := range []*weir.Gate{gate, gates.Get("a"), joined} {
			runCalls(g, 30, 0)
		}
		for range 3 {
			policies.Handler(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		}
		time.Sleep(time.Second)
		s := getSnapshot(t, page)
		for name, want := range map[string][3]float64{
			"bucket": {100, 1, 25}, "log": {25, 0.25, 0}, "gate": {10, 60, 3}, "group": {60, 60, 2},
			"gates": {100, 1, 25}, "joined": {100, 1, 25}, "policy": {60, 60, 2}, "fleet": {100, 1, 25},
		} {
			r := s.row(t, name)
			require.Equal(t, "limited", r.Trouble, name)
			require.Equal(t, want, [3]float64{*r.Limit, *r.Period, float64(r.Burst)}, name)
		}
	})
}

// fileSource yields metrics as a configuration file does.
type fileSource struct{ series *stat.Series }

func (f fileSource) Observe(yield func(*stat.Series, float64) bool) { yield(f.series, 0) }

func TestAConfigurationFileIsNoSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := newDefaultPage(fileSource{instrument.ConfigRefused.Series("weir.yaml")}, newFakeSource("mail"))
		getSnapshot(t, page)
		time.Sleep(time.Second)
		s := getSnapshot(t, page)
		require.Len(t, s.Rows, 1)
		require.Equal(t, "mail", s.Rows[0].Name)
		require.Nil(t, s.Rows[0].Rate, "it makes no calls")
	})
}
