package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/view"
)

var shortCooldownConfig = breaker.Config{MinCalls: 1, Cooldown: 5 * time.Second, Probes: 2, Recovery: 20 * time.Second, Latency: true}

func TestRowSaysSinceWhenWhyAndWhatIsNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := shortCooldownConfig
		c.MinCalls = 2
		b := breaker.New("bank", c)
		page := newDefaultPage(b)
		began := time.Now().UnixMilli()
		runCalls(b, 0, 2)
		r := getSnapshot(t, page).row(t, "bank")
		require.Equal(t, began, *r.Down)
		require.Equal(t, began+5000, *r.Probe)
		require.Equal(t, "failure rate 100% of 2 calls, limit 50%", r.Cause)
		require.Equal(t, "error: the service is down", r.LastError)
		require.Equal(t, began, *r.LastErrorAt)

		time.Sleep(5 * time.Second)
		runCalls(b, 0, 2) // failed probes
		time.Sleep(time.Second)
		r = getSnapshot(t, page).row(t, "bank")
		require.Equal(t, began, *r.Down, "since the first opening, not since the last probe")
		require.Equal(t, 2, r.Openings)
		require.Equal(t, began+10_000, *r.Probe)

		time.Sleep(4 * time.Second)
		runCalls(b, 1, 0)
		r = getSnapshot(t, page).row(t, "bank")
		require.Equal(t, "half_open", r.State)
		require.Equal(t, 1, r.Probes)
		runCalls(b, 1, 0)
		time.Sleep(time.Second)
		r = getSnapshot(t, page).row(t, "bank")
		require.Equal(t, "recovering", r.State)
		require.Equal(t, 8, r.OneOf, "one of eight calls passes")
		require.Equal(t, began, *r.Down)
	})
}

func TestIncidentsBeforeThePageWasOpenedAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := shortCooldownConfig
		c.Recovery = breaker.Off
		b := breaker.New("bank", c)
		page := newDefaultPage(b)
		began := time.Now().UnixMilli()
		for range 2 {
			runCalls(b, 0, 1)
			time.Sleep(5 * time.Second)
			runCalls(b, 2, 0)
		}
		time.Sleep(time.Minute)
		r := getSnapshot(t, page).row(t, "bank")
		require.Nil(t, r.Down)
		require.Equal(t, 2, r.Incidents)
		require.Equal(t, began, *r.FirstBegan)
		require.Equal(t, began+5000, *r.LastBegan)
		require.Equal(t, began+10_000, *r.LastEnded)

		d := readDetail(t, page, r.ID)
		require.Len(t, d.Incidents, 2)
		require.Equal(t, began, d.Incidents[0].Began)
		require.Equal(t, began+5000, *d.Incidents[0].Ended)
		require.Contains(t, d.Incidents[0].Cause, "failure rate 100%")
	})
}

func TestMembersOfAGroupHaveKeyLatencyAndReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{Gate: weir.Config{Breaker: shortCooldownConfig}})
		page := newDefaultPage(hosts)
		_ = hosts.Get("a.example").Run(t.Context(), func(context.Context) error { time.Sleep(time.Second); return nil })
		_ = hosts.Get("b.example").Run(t.Context(), func(context.Context) error { return errors.New("no route to b") })
		s := getSnapshot(t, page)
		a, b := s.row(t, "hosts / a.example"), s.row(t, "hosts / b.example")
		require.Equal(t, "a.example", a.Key)
		require.InDelta(t, 1.0, *a.P50, 0.09)
		require.InDelta(t, 1.0, *a.P99, 0.09)
		require.Nil(t, a.Down)
		require.NotNil(t, b.Down)
		d := readDetail(t, page, b.ID)
		require.Contains(t, d.Why, "failure rate 100% of 1 calls, limit 50%")
		require.Equal(t, "error: no route to b", d.Failures[0].Text)
		for _, m := range d.Metrics {
			for _, attr := range m.Attrs {
				require.NotEqual(t, "weir.group.key", attr[0], "the title has the key")
			}
		}
	})
}

func TestRowSaysWhenALimitIsFreeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, time.Minute), Burst: 1, Name: "signup"})
		g := weir.New("mail", weir.Config{Rate: limiter.Per(1, time.Hour), Burst: 1})
		page := newDefaultPage(l, g)
		require.Nil(t, getSnapshot(t, page).row(t, "signup").Free)
		began := time.Now().UnixMilli()
		l.Take(1)
		l.Take(1)
		runCalls(g, 2, 0)
		time.Sleep(time.Second)
		s := getSnapshot(t, page)
		signup := s.row(t, "signup")
		require.Equal(t, began+60_000, *signup.Free)
		require.Equal(t, "limited", signup.Trouble)
		require.True(t, signup.TroubleAtLeast, "the page has just been opened")
		require.Equal(t, 1.0, *signup.Limit)
		require.Equal(t, 60.0, *signup.Period)
		require.Equal(t, began+3_600_000, *s.row(t, "mail").Free)

		held := weir.New("asked", weir.Config{})
		require.NoError(t, page.Add(held))
		held.Hold(10 * time.Minute)
		time.Sleep(time.Second)
		r := getSnapshot(t, page).row(t, "asked")
		require.Equal(t, "held", r.Trouble)
		require.GreaterOrEqual(t, *r.Free, began+601_000)
		require.LessOrEqual(t, *r.Free, began+661_000, "a hold is lengthened by up to a tenth")
	})
}

func TestRowShowsTheShareOfSlowCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", breaker.Config{SlowCall: 100 * time.Millisecond, SlowRate: 0.8})
		page := newDefaultPage(b)
		for n := range 4 {
			_ = b.Run(t.Context(), func(context.Context) error {
				time.Sleep(time.Duration(n) * 60 * time.Millisecond)
				return nil
			})
		}
		r := getSnapshot(t, page).row(t, "bank")
		require.Equal(t, 0.5, *r.Slow)
		require.Equal(t, 0.8, *r.SlowLimit)
		require.Equal(t, 0.1, *r.SlowCall)
	})
}

func TestAlertHasThresholdUnitAndWorstHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hosts := breaker.NewGroup[string]("hosts", breaker.GroupConfig{})
		monitor := alert.NewMonitor(alert.Config{}, alert.Rule{
			Name: "host fails", When: alert.Above(0.05),
			Value: alert.Each(hosts.All(), func(b *breaker.Breaker) alert.Value { return alert.FailureRate(b, time.Minute) }),
		})
		page := newDefaultPage(hosts, monitor)
		for _, key := range []string{"a", "b", "c"} {
			hosts.Get(key)
		}
		ctx, stop := context.WithCancel(t.Context())
		go monitor.Run(ctx)
		time.Sleep(10 * time.Second)
		require.Equal(t, "no calls in the span, keeping the last verdict", getSnapshot(t, page).Alerts[0].NoData)
		runCalls(hosts.Get("a"), 10, 0)
		runCalls(hosts.Get("b"), 5, 5)
		runCalls(hosts.Get("c"), 9, 1)
		time.Sleep(10 * time.Second)
		a := getSnapshot(t, page).Alerts[0]
		require.Equal(t, "firing", a.State)
		require.Equal(t, "b", a.Worst)
		require.Equal(t, 2, a.Keys)
		require.Equal(t, 0.05, *a.Threshold)
		require.Equal(t, "ratio", a.Unit)
		require.Empty(t, a.NoData)
		require.Zero(t, a.Silenced)
		require.NoError(t, monitor.Silence(alert.Silence{Name: "x", Match: []string{"key=b"}, EndsAt: time.Now().Add(time.Hour)}))
		time.Sleep(10 * time.Second)
		require.Equal(t, 1, getSnapshot(t, page).Alerts[0].Silenced)
		stop()
		synctest.Wait()
	})
}

func TestDetailHasTheSettingsInForce(t *testing.T) {
	page := newDefaultPage(breaker.New("bank", breaker.Config{FailureRate: 0.3}))
	settings := readDetail(t, page, getSnapshot(t, page).Rows[0].ID).Settings
	require.Equal(t, struct{ Name, Value string }{"FailureRate", "30 %"}, settings[0])
}

func TestAPartialFailureIsATroubleFromTheMomentItBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", breaker.Config{})
		page := newDefaultPage(b)
		for range 4 {
			runCalls(b, 10, 1)
			time.Sleep(time.Second)
			require.Empty(t, getSnapshot(t, page).row(t, "bank").Trouble)
		}
		runCalls(b, 10, 20)
		time.Sleep(time.Second)
		r := getSnapshot(t, page).row(t, "bank")
		require.Equal(t, "failing", r.Trouble)
		require.False(t, r.TroubleAtLeast)
		require.Equal(t, time.Now().UnixMilli(), *r.TroubleSince)
		require.Contains(t, r.LastError, "the service is down")
		time.Sleep(20 * time.Second)
		require.Empty(t, getSnapshot(t, page).row(t, "bank").Trouble)
	})
}

func TestRefusalsByABreakerDoNotShowAUsedUpLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("bank", weir.Config{Rate: limiter.PerSecond(1000), Breaker: shortCooldownConfig})
		page := newDefaultPage(g)
		getSnapshot(t, page)
		runCalls(g, 0, 20)
		time.Sleep(time.Second)
		require.NotZero(t, *getSnapshot(t, page).row(t, "bank").Refused)
		g.Breaker().Reset()
		time.Sleep(time.Second)
		r := getSnapshot(t, page).row(t, "bank")
		require.NotZero(t, *r.Refused)
		require.Empty(t, r.Trouble)
	})
}

func TestTextsOfProblemsAreBounded(t *testing.T) {
	b := breaker.New("bank", breaker.Config{
		MinCalls: 1, DescribeFailure: func(_ context.Context, _ error, f *breaker.FailedCall) { f.Note = strings.Repeat("é", 500) },
	})
	page := newDefaultPage(b)
	runCalls(b, 0, 1)
	r := getSnapshot(t, page).row(t, "bank")
	require.LessOrEqual(t, len(r.LastError), 240+len("…"))
	require.Contains(t, r.LastError, "the service is down")
}

func TestRowsAreSmall(t *testing.T) {
	size := func(open bool) int {
		const rows = 200
		page := newDefaultPage()
		for n := range rows {
			b := breaker.New(fmt.Sprintf("service-%04d", n), breaker.Config{})
			if open {
				runCalls(b, 0, 20)
			}
			require.NoError(t, page.Add(b))
		}
		return get(page, "/snapshot.json").Body.Len() / rows
	}
	require.Less(t, size(false), 240, "bytes per source that is well")
	require.Less(t, size(true), 640, "bytes per open breaker")
}

func TestEachSourceKeepsItsOwnChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calm, busy := breaker.New("calm", shortCooldownConfig), breaker.New("busy", shortCooldownConfig)
		page := newDefaultPage(calm, busy)
		getSnapshot(t, page)
		openBreaker(calm)
		for n := range 120 {
			time.Sleep(time.Second)
			if n%2 == 0 {
				openBreaker(busy)
			} else {
				busy.Reset()
			}
			getSnapshot(t, page)
		}
		s := getSnapshot(t, page)
		require.NotEmpty(t, readDetail(t, page, s.row(t, "calm").ID).Changes, "changes of others have not replaced it")
		require.Len(t, readDetail(t, page, s.row(t, "busy").ID).Changes, 32)
	})
}

// customGuard is a guard of a user, with a metric of its own.
type customGuard struct{ status view.Status }

var customMetric = &stat.Series{
	Instrument: &stat.Instrument{Name: "shop.canary.health", Unit: "1", Help: "Health of a canary.", Kind: stat.Gauge, Attrs: []string{"shop.canary.name"}},
	Values:     []string{"new checkout"},
}

func (*customGuard) Observe(yield func(*stat.Series, float64) bool) {
	yield(customMetric, 1)
}
func (g *customGuard) Views(yield func(view.View) bool) { yield(g) }
func (*customGuard) Kind() string                       { return "canary" }
func (*customGuard) Name() string                       { return "new checkout" }
func (g *customGuard) Status() view.Status              { return g.status }
func (g *customGuard) Settings() []view.Setting {
	return []view.Setting{{Name: "Share", Value: "10 %"}}
}

func TestTheIncidentsOfAGuardOfTheUserAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		g := &customGuard{view.Status{
			Incidents: []view.Incident{{Began: began, Openings: 1, Cause: "3 of 4 orders failed"}},
			Reason:    "3 of 4 orders failed", RetryAt: began.Add(time.Minute),
			Failures: []view.Failure{{Time: began, Kind: "timeout", Message: "no answer"}},
		}}
		g.status.Config = g
		page := newDefaultPage(g)
		r := getSnapshot(t, page).row(t, "new checkout")
		require.Equal(t, began.UnixMilli(), *r.Down)
		require.Equal(t, began.Add(time.Minute).UnixMilli(), *r.Probe)
		require.Equal(t, "3 of 4 orders failed", r.Reason)
		require.Contains(t, r.LastError, "no answer")
		d := readDetail(t, page, r.ID)
		require.Len(t, d.Incidents, 1)
		require.Equal(t, "10 %", d.Settings[0].Value)
	})
}

// A gate by Join shows its incident in the entry of its breaker, which has another name.
func TestTheIncidentOfAGateStandsWithItsBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", shortCooldownConfig)
		bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(50)})
		page := newDefaultPage(weir.Join("payments", weir.Parts{Breaker: b, Limiter: bucket}))
		runCalls(b, 0, 2)
		time.Sleep(time.Second)
		s := getSnapshot(t, page)
		require.NotNil(t, s.row(t, "bank").Down)
		require.Nil(t, s.row(t, "payments").Down)
	})
}
