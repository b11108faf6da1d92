package admin_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/weirhttp"
	"github.com/weir-go/weir/window"
)

func TestLimitsAndResetOfAThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := throttle.New("search", throttle.Config{MinCalls: 1, MaxRefusal: 1})
		k := newHandlerTest(t, s)
		refused := func() (n int) {
			for range 100 {
				p, err := s.Allow()
				if p.Record(window.Ignored); err != nil {
					n++
				}
			}
			return n
		}
		for range 1000 {
			p, _ := s.Allow()
			p.Record(window.Failure)
		}
		require.NotZero(t, refused())
		before := s.Totals()
		k.sendAction("reset", "name=search", "")
		require.Zero(t, refused())
		require.Equal(t, before.Failures, s.Totals().Failures, "totals are kept")
		require.Equal(t, before.Refused, s.Totals().Refused)

		a := k.sendAction("limits", "name=search", `{"max_refusal":0.25,"for":"1h"}`)
		require.Equal(t, 2.0, a.K)
		require.Equal(t, 0.25, a.MaxRefusal)
		k.requireRefused(400, "K is 0.5, must be", "/limits?name=search", `{"k":0.5}`)
		k.requireRefused(400, "k is 0, must be a number above 0", "/limits?name=search", `{"k":0}`)
		k.requireRefused(400, "MaxRefusal is 1.5", "/limits?name=search", `{"max_refusal":1.5}`)
		k.requireRefused(400, "max_refusal is 1e999", "/limits?name=search", `{"max_refusal":1e999}`)
		k.requireRefused(409, "no rate that can be changed, only k, max_refusal", "/limits?name=search", `{"rate":"1/s"}`)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, 1.0, k.send("GET", "/object?name=search", "").MaxRefusal)
	})
}

func TestActionsOnPolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policies := []weirhttp.Policy{
			{Name: "second", Rate: limiter.PerMinute(1), Burst: 2, By: weirhttp.ByIP, ShowKeys: true},
			{Name: "day", Limit: 5, Window: 24 * time.Hour, By: weirhttp.ByHeader("Key")},
		}
		limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: policies})
		k := newHandlerTest(t, limit)
		serve := limit.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		ask := func() int {
			// of 192.0.2.1
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/", http.NoBody)
			r.Header.Set("Key", "bob")
			w := httptest.NewRecorder()
			serve.ServeHTTP(w, r)
			return w.Code
		}
		require.Len(t, k.send("GET", "/objects", "").Objects, 2)
		require.Equal(t, []int{200, 200, 429}, []int{ask(), ask(), ask()})
		require.Equal(t, "192.0.2.1", k.send("GET", "/object?name=second", "").Busiest[0].Key)

		k.sendAction("reset", "name=second&key=192.0.2.1", "")
		require.Equal(t, []int{200, 200, 429}, []int{ask(), ask(), ask()})
		a := k.sendAction("limits", "name=day&all=true", `{"limit":4,"for":"1h"}`)
		require.Equal(t, 4, a.Limit)
		k.sendAction("reset", "name=second&all=true", "")
		require.Equal(t, 429, ask(), "four requests have used the quota of the day, also before the change")
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, 200, ask(), "the fifth")
		require.Equal(t, 429, ask())
		k.sendAction("reset", "name=day&key=bob", "")
		require.Equal(t, 200, ask())
		k.sendAction("reset", "name=day&all=true", "")
		k.sendAction("reset", "name=second&all=true", "")
		k.sendAction("hold", "name=second&all=true", `{"for":"1m"}`)
		require.Equal(t, 429, ask())
		time.Sleep(time.Minute)
		require.Equal(t, 200, ask())

		k.requireRefused(400, "Rate is unlimited, must be finite", "/limits?name=second&all=true", `{"rate":"unlimited"}`)
	})
}

func TestSilencesOfAMonitor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		fails := errors.New("receiver is away")
		m := alert.NewMonitor(alert.Config{Instance: "web-1", Notify: []alert.Notifier{
			alert.Func("slack", func(_ context.Context, a alert.Alert) error {
				sent = append(sent, string(a.State))
				return nil
			}),
			alert.Func("broken", func(context.Context, alert.Alert) error { return fails }),
		}},
			alert.Rule{Name: "payments fail", Value: alert.Bool(func() bool { return true }), When: alert.Above(0), Severity: "page"},
			alert.Rule{Name: "never", Value: alert.Bool(func() bool { return false }), When: alert.Above(0)})
		m.Evaluate(time.Now())
		k := newHandlerTest(t, m)
		d := k.send("GET", "/object?name=web-1", "")
		require.Equal(t, []string{"payments fail", "never"}, d.Rules, "in their order")
		require.Equal(t, []string{"slack", "broken"}, d.Notifiers)
		require.Equal(t, "firing", d.Alerts[0].State)
		require.Equal(t, "page", d.Alerts[0].Severity)

		k.sendAction("silence", "name=web-1", `{"match":["alertname=\"payments fail\"","severity=page"],"for":"1h","reason":"deploy"}`)
		m.Evaluate(time.Now())
		d = k.send("GET", "/object?name=web-1", "")
		name := `alertname="payments fail", severity=page`
		require.Equal(t, name, d.Silences[0].Silence, "the conditions are the default name")
		require.Equal(t, name, d.Alerts[0].SilencedBy)
		require.Equal(t, time.Now().Add(time.Hour).Format(time.RFC3339Nano), d.Silences[0].EndsAt)
		require.Contains(t, d.History[0].After, name)
		k.sendAction("unsilence", "name=web-1", `{"silence":"alertname=\"payments fail\", severity=page"}`)
		require.Empty(t, k.send("GET", "/object?name=web-1", "").Silences)
		k.requireRefused(404, `has no silence "x"`, "/unsilence?name=web-1", `{"silence":"x"}`)
		k.sendAction("silence", "name=web-1", `{"match":["alertname=x"],"for":"1h","silence":"deploy"}`)
		time.Sleep(time.Hour)
		require.Empty(t, k.send("GET", "/object?name=web-1", "").Silences, "a silence ends by itself")

		for body, want := range map[string]string{
			`{"match":["alertname"],"for":"1h"}`:               "must be a label, one of",
			`{"match":["alertname=~\".*\""],"for":"1h"}`:       "Match holds for an alert without labels",
			`{"match":[],"for":"1h"}`:                          "match must be an array of strings",
			`{"match":"alertname=x","for":"1h"}`:               "match must be an array of strings",
			`{"match":null,"for":"1h"}`:                        "match must be an array of strings",
			`{"match":["a=b"],"for":"1h","silence":""}`:        "silence is",
			`{"match":["a=b"]}`:                                `no "for"`,
			`{"match":["a=b"],"for":"1h","starts":"tomorrow"}`: `unknown field "starts"`,
		} {
			k.requireRefused(400, want, "/silence?name=web-1", body)
		}

		k.sendAction("test", "name=web-1", `{"notifier":"slack"}`)
		require.Equal(t, []string{"firing", "resolved"}, sent)
		k.requireRefused(502, "receiver is away", "/test?name=web-1", `{"notifier":"broken"}`)
		k.requireRefused(404, `has no notifier "pager", only ["slack" "broken"]`, "/test?name=web-1", `{"notifier":"pager"}`)
	})
}

func TestSourcesOfOtherModules(t *testing.T) {
	var resets []string
	l := newLink().(linkSource)
	k := newHandlerTest(t, l, remoteSource{&resets})
	k.sendAction("force", "name=x&kind=link&all=true", `{"state":"open"}`)
	require.Equal(t, breaker.ForcedOpen, l.first.State())
	require.Equal(t, breaker.ForcedOpen, l.second.State())
	k.sendAction("release", "name=x&kind=link&key=b:6379", "")
	require.Equal(t, breaker.Closed, l.second.State())
	k.sendAction("release", "name=x&kind=link&all=true", "")
	require.Equal(t, breaker.Closed, l.first.State())

	k.sendAction("reset", "name=x&kind=other&key=bob", "")
	require.Equal(t, []string{"bob"}, resets)
	require.Equal(t, "bob", k.send("GET", "/object?name=x&kind=other", "").Busiest[0].Key)
	k.requireRefused(502, "the reset failed: redis is unavailable", "/reset?name=x&kind=other&key=down", "")
	k.requireRefused(409, "and for one key of it reset", "/hold?name=x&kind=other&all=true", `{"for":"1m"}`)
}

// The names of policies and monitors can change, so only a request finds out that two objects have
// the same name.
func TestObjectsOfTheSameName(t *testing.T) {
	k := newHandlerTest(t, newMonitor(), newMonitor(), newPolicy(weirhttp.Policy{Limit: 3, Window: time.Hour})())
	k.requireRefused(409, "the name of several objects, add kind=…", "/reset?name=x", "")
	k.requireRefused(409, `"x" is the name of 2 objects of the kind monitor: each needs a name of its own`, "/reset?name=x&kind=monitor", "")
	k.sendAction("reset", "name=x&kind=policy&all=true", "")
}

// One test message of a monitor is sent at a time. It delays no other action, however long it
// takes.
func TestATestMessageDelaysNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := alert.NewMonitor(alert.Config{Instance: "web-1", Notify: []alert.Notifier{alert.Func("hangs", func(ctx context.Context, _ alert.Alert) error {
			<-ctx.Done()
			return ctx.Err()
		})}})
		k := newHandlerTest(t, m)
		done := make(chan answer)
		go func() { done <- k.send("POST", "/test?name=web-1", `{"notifier":"hangs"}`) }()
		synctest.Wait()
		k.requireRefused(409, "another action on this object is in progress", "/test?name=web-1", `{"notifier":"hangs"}`)
		k.sendAction("silence", "name=web-1", `{"match":["alertname=x"],"for":"1h"}`)
		require.Equal(t, 502, (<-done).Status)
	})
}

// An abusive key can be held before its first request if keys are strings: then the text in the
// query is the key.
func TestHoldOfAKeyThatWasNotSeen(t *testing.T) {
	users := limiter.NewGroup(limiter.GroupConfig[string]{Name: "users", Rate: limiter.PerSecond(9)})
	ports := limiter.NewGroup(limiter.GroupConfig[int]{Name: "ports", Rate: limiter.PerSecond(9)})
	k := newHandlerTest(t, users, ports)
	k.sendAction("hold", "name=users&key=mallory", `{"for":"1h"}`)
	require.False(t, users.Get("mallory").Take(1).OK)
	require.True(t, users.Get("bob").Take(1).OK)
	k.requireRefused(404, `has no key "80" now`, "/hold?name=ports&key=80", `{"for":"1h"}`)
}
