package dashboard_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

func TestRowOfAGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		payments := weir.New("payments", weir.Config{
			Rate: limiter.PerSecond(10), Burst: 10, Breaker: breaker.Config{Latency: true},
		})
		page := newDefaultPage(payments)
		first := getSnapshot(t, page).row(t, "payments")
		require.Equal(t, "gate", first.Kind)
		require.Equal(t, "closed", first.State)
		require.Nil(t, first.Rate, "a rate needs two samples")
		require.Nil(t, first.FailureRate)
		require.Nil(t, first.P50)

		for range 12 { // of which the limiter lets 10 pass
			_ = payments.Run(t.Context(), func(context.Context) error {
				time.Sleep(8 * time.Millisecond)
				return nil
			})
		}
		runCalls(payments, 0, 2)
		time.Sleep(time.Second)
		r := getSnapshot(t, page).row(t, "payments")
		passed, refused := payments.Totals().Calls(), payments.Stats().Refused
		require.Equal(t, int64(14), passed+refused)
		span := 1 + 0.008*float64(passed-payments.Totals().Failures)
		require.InDelta(t, float64(passed)/span, *r.Rate, 0.01)
		require.InDelta(t, float64(refused)/span, *r.Refused, 0.01)
		require.InDelta(t, payments.Breaker().Counts().FailureRate(), *r.FailureRate, 0.0001, "the breaker's window")
		require.Equal(t, 0.5, *r.Threshold)
		require.InDelta(t, 0.008, *r.P50, 0.001)
		require.InDelta(t, *r.Rate-float64(payments.Totals().Failures)/span, *r.CallRates[0], 0.01, "went well")

		d := readDetail(t, page, r.ID)
		require.Equal(t, "payments", d.Name)
		require.Len(t, d.History.At, 2)
		require.Nil(t, d.History.Passed[0])
		require.Equal(t, *r.CallRates[0], *d.History.Passed[1])
		require.Equal(t, *r.Refused, *d.History.Refused[1])
		require.Equal(t, []string{"closed", "closed"}, d.History.State)
		require.NotNil(t, d.Available)
	})
}

func TestRatesCoverTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("users", breaker.Config{})
		page := newDefaultPage(b)
		getSnapshot(t, page)
		for second := range 15 {
			runCalls(b, 10*second, 0)
			time.Sleep(time.Second)
			getSnapshot(t, page)
		}
		r := getSnapshot(t, page).row(t, "users")
		require.Equal(t, 95.0, *r.Rate, "the mean of 50 to 140 calls per second")
		require.Equal(t, 140.0, *r.CallRates[0], "the last second")

		trail := getSnapshot(t, page).Trails[r.ID]
		require.Len(t, trail, 16)
		require.Nil(t, trail[0][0])
		require.Equal(t, 130.0, *trail[14][0])
	})
}

func TestNoRateAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("users", breaker.Config{})
		page := newDefaultPage(b)
		getSnapshot(t, page)
		runCalls(b, 1000, 0)
		time.Sleep(time.Minute)
		r := getSnapshot(t, page).row(t, "users")
		require.Nil(t, r.Rate, "after a minute without samples the times of the calls are unknown")
		require.Nil(t, r.CallRates[0])

		runCalls(b, 7, 0)
		time.Sleep(time.Second)
		r = getSnapshot(t, page).row(t, "users")
		require.Equal(t, 7.0, *r.Rate)
		require.Len(t, readDetail(t, page, r.ID).History.At, 3)

		time.Sleep(6 * time.Minute)
		getSnapshot(t, page)
		require.Len(t, readDetail(t, page, r.ID).History.At, 1, "older points are removed")
	})
}

func TestRowOfALimiterShowsWhetherItLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 4, Name: "signup"})
		page := newDefaultPage(l)
		r := getSnapshot(t, page).row(t, "signup")
		require.Equal(t, "limiter", r.Kind)
		require.Equal(t, "passing", r.State)

		for range 6 {
			l.Take(1)
		}
		time.Sleep(time.Second)
		r = getSnapshot(t, page).row(t, "signup")
		require.Equal(t, "limiting", r.State)
		require.Equal(t, 4.0, *r.Rate)
		require.Equal(t, 2.0, *r.Refused)
		for range 12 {
			time.Sleep(time.Second)
			r = getSnapshot(t, page).row(t, "signup")
		}
		require.Equal(t, "passing", r.State)
	})
}

func TestBreakerAndLimiterOfTheSameNameShareARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("mail", breaker.Config{})
		l := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 4, Name: "mail"})
		page := newDefaultPage(b, l)
		getSnapshot(t, page)
		runCalls(b, 3, 0)
		for range 6 {
			l.Take(1)
		}
		time.Sleep(time.Second)
		s := getSnapshot(t, page)
		require.Len(t, s.Rows, 1)
		require.Equal(t, "gate", s.Rows[0].Kind)
		require.Equal(t, 3.0, *s.Rows[0].Rate, "the calls that the breaker allowed, not those that the limiter allowed")
		require.Equal(t, 2.0, *s.Rows[0].Refused)
	})
}

func TestLatencyOfAGateIsInItsBreakersRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", breaker.Config{Latency: true})
		page := newDefaultPage(weir.Join("checkout", weir.Parts{Breaker: b}))
		_ = b.Run(t.Context(), func(context.Context) error { time.Sleep(time.Second); return nil })
		require.InDelta(t, 1.0, *getSnapshot(t, page).row(t, "bank").P99, 0.09)
	})
}

func TestAlertsAndNotifiers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("bank", breaker.Config{Cooldown: time.Minute})
		monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{alert.Func("pager", func(context.Context, alert.Alert) error { return nil })}},
			alert.Rule{Name: "bank is open", Severity: "page", Value: alert.Bool(b.Tripped), When: alert.Above(0)})
		page := newDefaultPage(b, monitor)
		ctx, stop := context.WithCancel(t.Context())
		go monitor.Run(ctx)
		time.Sleep(6 * time.Second)
		s := getSnapshot(t, page)
		require.Len(t, s.Rows, 1, "alerts are not in the table")
		require.Equal(t, "inactive", s.Alerts[0].State)

		openBreaker(b)
		time.Sleep(5500 * time.Millisecond) // longer than between two evaluations
		s = getSnapshot(t, page)
		require.Equal(t, "firing", s.Alerts[0].State)
		require.Equal(t, "page", s.Alerts[0].Severity)
		require.Equal(t, 1.0, s.Alerts[0].Firing)
		require.Equal(t, 1.0, *s.Alerts[0].Value)
		require.Equal(t, "pager", s.Notifiers[0].Name)
		require.Equal(t, 1.0, s.Notifiers[0].Delivered)
		require.Len(t, s.Changes, 2)

		d := readDetail(t, page, s.Alerts[0].ID)
		require.Equal(t, "alert", d.Class)
		require.Equal(t, []string{"inactive", "firing"}, d.History.State)
		require.Equal(t, 1.0, *d.History.Value[1])
		stop()
		synctest.Wait()
	})
}

func TestUserDefinedSourcesHaveRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := newDefaultPage(newFakeSource("mail"))
		r := getSnapshot(t, page).row(t, "mail")
		require.Equal(t, "queue", r.Kind)
		require.Empty(t, r.State)
		d := readDetail(t, page, r.ID)
		require.Equal(t, "other", d.Class)
		require.Equal(t, "shop.queue.length", d.Metrics[0].Instrument)
		require.Equal(t, 2.0, *d.Metrics[0].Value)
	})
}

func TestDetailHasEveryMetricOfASource(t *testing.T) {
	b := breaker.New("bank", breaker.Config{})
	n := 0
	for range b.Observe {
		n++
	}
	page := newDefaultPage(b)
	d := readDetail(t, page, getSnapshot(t, page).Rows[0].ID)
	require.Len(t, d.Metrics, n)
	require.Equal(t, "weir.breaker.state", d.Metrics[0].Instrument)
	require.Equal(t, [][]string{{"weir.breaker.state", "closed"}}, d.Metrics[0].Attrs, "without the naming attribute")
}

func TestSourcesComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := breaker.New("one", breaker.Config{}), breaker.New("two", breaker.Config{Latency: true})
		page := newDefaultPage(one)
		h := startHost(page)
		defer h.Close()
		s := h.stream(t)
		_, data := s.next()
		require.Len(t, data.Rows, 1)

		require.NoError(t, page.Add(two))
		require.NoError(t, page.Add(two))
		_, data = s.next()
		require.Equal(t, "breaker", data.row(t, "two").Kind)

		page.Remove(two)
		_, data = s.next()
		require.Len(t, data.Gone, 1)
		require.Len(t, getSnapshot(t, page).Rows, 1)
		require.NoError(t, page.Add(breaker.New("two", breaker.Config{})), "the name can be used again")
		s.leave()
	})
}

func TestNamesAreEncodedAndTruncated(t *testing.T) {
	long := strings.Repeat("long ", 2000) + "end"
	evil := "</script><img src=x onerror=\"alert('1')\">\r\n\r\nevent: snapshot\ndata: {}\u2028\x00\xff"
	page := newDefaultPage(breaker.New(long, breaker.Config{}), breaker.New(evil, breaker.Config{}), breaker.New("", breaker.Config{}))

	body := get(page, "/snapshot.json").Body.String()
	require.NotContains(t, body, "<img")
	require.NotContains(t, body, "\n", "an event is one line")
	require.Less(t, len(body), 3000)

	rows := getSnapshot(t, page).Rows
	require.Len(t, rows, 3)
	for n, want := range []string{"", strings.ReplaceAll(evil, "\xff", "\uFFFD"), long} {
		require.Equal(t, want, readDetail(t, page, rows[n].ID).Name, "all of it")
		require.Len(t, rows[n].ID, 12)
	}
}

func TestDetailSaysWhyCallsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := weir.New("bank", weir.Config{Breaker: breaker.Config{MinCalls: 1, Cooldown: time.Hour}})
		page := newDefaultPage(gate)
		id := getSnapshot(t, page).Rows[0].ID
		require.Empty(t, readDetail(t, page, id).Why)

		_ = gate.Run(t.Context(), func(context.Context) error { return errors.New("no <b>money</b>") })
		time.Sleep(time.Second)
		getSnapshot(t, page)
		d := readDetail(t, page, id)
		require.Equal(t, strings.Split(gate.Explain(), "\n")[0], d.Why)
		require.Contains(t, d.Why, "failure rate 100% of 1 calls")
		require.Equal(t, "error: no <b>money</b>", d.Failures[0].Text)

		gate.Breaker().Reset()
		time.Sleep(time.Second)
		getSnapshot(t, page)
		require.Empty(t, readDetail(t, page, id).Why)
	})
}

func TestAFullTableOfKeysIsTroubleWhileItIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logins := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerMinute(1), MaxKeys: 1, Name: "logins"})
		hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{MaxKeys: 1, Gate: weir.Config{Rate: limiter.PerMinute(1)}})
		logins.Get("a").Take(1)
		logins.Get("b").Take(1) // before the page was opened
		runCalls(hosts.Get("a"), 0, 1)
		page := newDefaultPage(logins, hosts)
		getSnapshot(t, page)
		time.Sleep(time.Second)
		s := getSnapshot(t, page)
		require.Empty(t, s.row(t, "logins").Trouble)
		require.Empty(t, s.row(t, "hosts").Trouble)

		for range 5 {
			time.Sleep(time.Second)
			logins.Get("b").Take(1)
			runCalls(hosts.Get("b"), 1, 0)
			s = getSnapshot(t, page)
		}
		r := s.row(t, "logins")
		require.Equal(t, "full", r.Trouble)
		require.Equal(t, 5.0, r.NoRoom)
		require.Zero(t, r.Unguarded)
		r = s.row(t, "hosts")
		require.Equal(t, "full", r.Trouble)
		require.Equal(t, 5.0, r.Unguarded)
		require.Equal(t, time.Now().Add(-4*time.Second).UnixMilli(), *r.TroubleSince)

		for range 12 {
			time.Sleep(time.Second)
			s = getSnapshot(t, page)
		}
		require.NotEqual(t, "full", s.row(t, "logins").Trouble)
		require.NotEqual(t, "full", s.row(t, "hosts").Trouble)
	})
}

func TestRulesThatAreNotEvaluatedAreNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		m := alert.NewMonitor(alert.Config{Logger: slog.New(slog.DiscardHandler)},
			alert.Rule{Name: "disk is full", Value: alert.Gauge(func() float64 {
				if broken.Load() {
					panic("no disk")
				}
				return math.NaN()
			}), When: alert.Above(0)})
		page := newDefaultPage(m)
		require.False(t, getSnapshot(t, page).Alerts[0].Late, "the program has just started")
		time.Sleep(16 * time.Second)
		require.True(t, getSnapshot(t, page).Alerts[0].Late, "Run was never called")

		ctx, stop := context.WithCancel(t.Context())
		go m.Run(ctx)
		time.Sleep(20 * time.Second)
		a := getSnapshot(t, page).Alerts[0]
		require.False(t, a.Late)
		require.Empty(t, a.Fault, "no data is no fault")
		broken.Store(true)
		time.Sleep(5 * time.Second)
		first := time.Now()
		time.Sleep(time.Minute)
		a = getSnapshot(t, page).Alerts[0]
		require.Equal(t, "panic", a.Fault)
		require.InDelta(t, first.UnixMilli(), *a.FailingSince, 5000)
		broken.Store(false)
		time.Sleep(5 * time.Second)
		a = getSnapshot(t, page).Alerts[0]
		require.Empty(t, a.Fault)
		require.Nil(t, a.FailingSince)

		stop()
		synctest.Wait()
		time.Sleep(9 * time.Second)
		require.False(t, getSnapshot(t, page).Alerts[0].Late)
		time.Sleep(7 * time.Second)
		require.True(t, getSnapshot(t, page).Alerts[0].Late, "Run has ended")
	})
}

func TestANotifierThatGaveUpSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := alert.Func("pager", func(_ context.Context, a alert.Alert) error {
			if a.Rule == "bad" {
				return &alert.DeliveryError{Permanent: true, Err: errors.New("no text after 1.23456s")}
			}
			return nil
		})
		rule := alert.Rule{Name: "bad", Value: alert.Gauge(func() float64 { return 1 }), When: alert.Above(0)}
		good := rule
		good.Name = "good"
		good.For = 10 * time.Second
		m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{refused}, Logger: slog.New(slog.DiscardHandler)}, rule, good)
		page := newDefaultPage(m)
		ctx, stop := context.WithCancel(t.Context())
		go m.Run(ctx)
		began := time.Now()
		time.Sleep(time.Second)
		n := getSnapshot(t, page).Notifiers[0]
		require.Equal(t, began.UnixMilli(), *n.FailingSince)
		time.Sleep(20 * time.Second)
		n = getSnapshot(t, page).Notifiers[0]
		require.Equal(t, 1.0, n.Delivered)
		require.Zero(t, n.Pending)
		require.Nil(t, n.FailingSince, "the latest attempt succeeded")
		require.Equal(t, began.UnixMilli(), *n.DroppedAt)
		require.Equal(t, "no text after 1.23 s", n.LastError)
		stop()
		synctest.Wait()
	})
}
