package notify_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
)

const routingKey = "0123456789abcdefghijABCDEFGHIJ" + "xy"

// pagerDutyReceiver is a receiver that enforces the contract of the Events API v2 as its
// documentation states it: the fields, their lengths, 512 KB per event, and 120 events in any 60
// seconds.
type pagerDutyReceiver struct {
	mu     sync.Mutex
	open   map[string]pagerDutyEvent // by dedup_key
	events []pagerDutyEvent
	times  []time.Time
	faults []string
	busy   int // answers 429
}

type pagerDutyEvent struct {
	RoutingKey string `json:"routing_key"`
	Action     string `json:"event_action"`
	DedupKey   string `json:"dedup_key"`
	Client     string `json:"client"`
	ClientURL  string `json:"client_url"`
	Payload    struct {
		Summary, Source, Severity, Timestamp, Component, Group, Class string
		Details                                                       map[string]any `json:"custom_details"`
	} `json:"payload"`
	Links  []struct{ Href, Text string }
	Images []struct{ Src, Href, Alt string }
}

func (p *pagerDutyReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.times = slices.DeleteFunc(p.times, func(at time.Time) bool { return now.Sub(at) >= time.Minute })
	if len(p.times) >= 120 {
		p.busy++
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	p.times = append(p.times, now)
	var body bytes.Buffer
	_, _ = body.ReadFrom(r.Body)
	size := body.Len()
	var e pagerDutyEvent
	decoder := json.NewDecoder(&body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&e); err != nil {
		p.faults = append(p.faults, err.Error())
	}
	p.check(r, e, size)
	if len(p.faults) > 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	p.events = append(p.events, e)
	if e.Action == "trigger" {
		p.open[e.DedupKey] = e
	} else {
		delete(p.open, e.DedupKey)
	}
	w.WriteHeader(http.StatusAccepted)
}

func (p *pagerDutyReceiver) check(r *http.Request, e pagerDutyEvent, size int) {
	_, timeErr := time.Parse(time.RFC3339Nano, e.Payload.Timestamp)
	for fault, found := range map[string]bool{
		"method or path":   r.Method != http.MethodPost || r.URL.Path != "/v2/enqueue",
		"content type":     r.Header.Get("Content-Type") != "application/json",
		"size":             size > 512_000,
		"routing_key":      e.RoutingKey != routingKey,
		"event_action":     e.Action != "trigger" && e.Action != "resolve",
		"dedup_key":        e.DedupKey == "" || utf8.RuneCountInString(e.DedupKey) > 255,
		"payload.summary":  e.Payload.Summary == "" || utf8.RuneCountInString(e.Payload.Summary) > 1024,
		"payload.source":   e.Payload.Source == "",
		"payload.severity": !slices.Contains([]string{"critical", "error", "warning", "info"}, e.Payload.Severity),
		"timestamp":        timeErr != nil,
		"links":            slices.ContainsFunc(e.Links, func(l struct{ Href, Text string }) bool { return !strings.HasPrefix(l.Href, "http") }),
	} {
		if found {
			p.faults = append(p.faults, fault)
		}
	}
}

// withPagerDuty runs a test with a receiver and a notifier.
func withPagerDuty(t *testing.T, test func(*testing.T, *pagerDutyReceiver, alert.Notifier)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		p := &pagerDutyReceiver{open: map[string]pagerDutyEvent{}}
		server.answer.Store(http.HandlerFunc(p.ServeHTTP))
		n := notify.NewPagerDuty(notify.Config{Transport: server.transport, URL: "http://events.example/v2/enqueue"}, routingKey)
		test(t, p, n)
		server.stop()
	})
}

func TestPagerDutyTriggersAndResolvesOneAlert(t *testing.T) {
	withPagerDuty(t, func(t *testing.T, p *pagerDutyReceiver, n alert.Notifier) {
		require.Equal(t, "pagerduty", n.Name())
		a := annotatedAlert()
		a.Key = "db-1"
		a.Labels["key"], a.Labels["instance"] = "db-1", "web-1:47"
		require.NoError(t, n.Notify(t.Context(), a))
		require.Empty(t, p.faults)
		require.Len(t, p.open, 1)
		e := p.events[0]
		require.Equal(t, "trigger", e.Action)
		require.Equal(t, "0123456789abcdef", e.DedupKey)
		require.Equal(t, "[FIRING] errors (db-1): failure rate is <0.4> & rising", e.Payload.Summary)
		require.Equal(t, "critical", e.Payload.Severity, "of the label page")
		require.Equal(t, "web-1:47", e.Payload.Source)
		require.Equal(t, "db-1", e.Payload.Component)
		require.Equal(t, "2026-01-02T03:04:05Z", e.Payload.Timestamp)
		require.Equal(t, map[string]any{
			"summary": "failure rate is <0.4> & rising", "value": "0.4", "severity": "page", "key": "db-1", "instance": "web-1:47",
			"description": "see <here> & there",
		}, e.Payload.Details)
		require.Equal(t, "https://runbooks.example/x?a=1&b=2", e.Links[0].Href)
		require.Equal(t, "runbook", e.Links[0].Text)
		a.State, a.EndsAt = alert.Resolved, a.StartsAt.Add(time.Hour)
		require.NoError(t, n.Notify(t.Context(), a))
		require.Empty(t, p.faults)
		require.Empty(t, p.open)
		require.Equal(t, "2026-01-02T04:04:05Z", p.events[1].Payload.Timestamp)
	})
}

func TestPagerDutyLimitsAreKeptByEveryAlert(t *testing.T) {
	withPagerDuty(t, func(t *testing.T, p *pagerDutyReceiver, n alert.Notifier) {
		for _, text := range []string{"x", "é", "\x00", "<", "\xff", "😀"} {
			long := strings.Repeat(text, 4096/len(text))
			a := alert.Alert{
				ID: strings.Repeat("f", 16), Rule: long, Key: long, Summary: long, State: alert.Firing, StartsAt: time.Now(),
				Labels: map[string]string{"severity": long, "instance": long}, Annotations: map[string]string{},
			}
			for i := range 40 {
				a.Labels[fmt.Sprint("l", i, strings.Repeat("x", 120))] = long
				a.Annotations[fmt.Sprint("a", i)] = long
				a.Annotations[fmt.Sprint("link", i)] = "https://x.example/" + strings.Repeat("é", 2000)
			}
			require.NoError(t, n.Notify(t.Context(), a))
			require.Empty(t, p.faults, "%q", text)
			require.Equal(t, "error", p.events[len(p.events)-1].Payload.Severity)
		}
		require.NoError(t, n.Notify(t.Context(), alert.Alert{ID: "x", State: alert.Firing}))
		require.Empty(t, p.faults, "an alert without texts")
		exact := firingAlert()
		exact.Summary = strings.Repeat("é", 1024-len("[FIRING] errors: "))
		require.NoError(t, n.Notify(t.Context(), exact))
		require.True(t, strings.HasSuffix(p.events[len(p.events)-1].Payload.Summary, "éé"), "not cut")
	})
}

func TestPagerDutySeverities(t *testing.T) {
	withPagerDuty(t, func(t *testing.T, p *pagerDutyReceiver, n alert.Notifier) {
		for label, want := range map[string]string{
			"critical": "critical", "page": "critical", "error": "error", "": "error", "P1": "error",
			"warning": "warning", "warn": "warning", "ticket": "warning", "info": "info",
		} {
			a := firingAlert()
			a.Labels["severity"] = label
			require.NoError(t, n.Notify(t.Context(), a))
			require.Equal(t, want, p.events[len(p.events)-1].Payload.Severity, label)
		}
	})
}

// 300 hosts fail at once. All alerts arrive as fast as the limit allows, and none gets a 429.
func TestPagerDutyRateIsKept(t *testing.T) {
	withPagerDuty(t, func(t *testing.T, p *pagerDutyReceiver, n alert.Notifier) {
		hosts := map[string]int{}
		for i := range 300 {
			hosts[fmt.Sprint("h", i)] = i
		}
		var bad atomic.Bool
		bad.Store(true)
		m := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{n}, Logger: discardLogger()},
			alert.Rule{Name: "x", When: alert.Above(0), Value: alert.Each(maps.All(hosts), func(int) alert.Value {
				return alert.Bool(bad.Load)
			})})
		ctx, cancel := context.WithCancel(t.Context())
		go m.Run(ctx)
		time.Sleep(3 * time.Minute)
		p.mu.Lock()
		require.Empty(t, p.faults)
		require.Zero(t, p.busy)
		require.Len(t, p.open, 300)
		p.mu.Unlock()
		bad.Store(false)
		time.Sleep(3*time.Minute + 10*time.Second)
		p.mu.Lock()
		require.Zero(t, p.busy)
		require.Empty(t, p.open)
		p.mu.Unlock()
		cancel()
		synctest.Wait()
	})
}

// Another process uses up the limit of the key.
func TestPagerDutyAnswers429(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		server.replies(http.StatusTooManyRequests)
		w := newSwitchedMonitor(t, notify.NewPagerDuty(notify.Config{URL: "http://pd.example", Transport: server.transport}, routingKey), discardLogger())
		w.set(true)
		time.Sleep(45 * time.Second)
		require.Len(t, server.requests(), 2, "30 seconds apart")
		server.replies(http.StatusAccepted)
		time.Sleep(45 * time.Second)
		require.Equal(t, 1.0, w.metric("delivered", ""))
		w.stop()
		server.stop()
	})
}

func TestPagerDutyKeyIsChecked(t *testing.T) {
	for _, key := range []string{"", "T0PSECRET", strings.Repeat("x", 31), strings.Repeat("x", 33), strings.Repeat("x", 31) + "\n"} {
		require.PanicsWithError(t, "notify: the key (not shown) must be 32 letters and digits", func() {
			notify.NewPagerDuty(notify.Config{}, notify.Secret(key))
		})
	}
	require.NotPanics(t, func() { notify.NewPagerDuty(notify.Config{}, routingKey) }, "the URL has a default")
}
