package browser_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/dashboard"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// pageState is a state of the page, with a condition that it has to reach.
type pageState struct {
	name    string
	sources func(t *testing.T) []stat.Source
	reached string
	gone    string // the server ends, and the title then ends with this
}

var errRefused = fmt.Errorf("charge: %w", &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connect: connection refused")})

// storefront returns three gates, of which failing ones get no connection.
func storefront(t *testing.T, failing ...string) []stat.Source {
	var sources []stat.Source
	gates := map[string]*weir.Gate{}
	for _, name := range []string{"payments", "search", "users"} {
		gates[name] = weir.New(name, weir.Config{Rate: limiter.PerSecond(1000), Breaker: breaker.Config{Cooldown: 10 * time.Second, Latency: true}})
		sources = append(sources, gates[name])
	}
	repeatUntilEnd(t, func() {
		for name, g := range gates {
			err := error(nil)
			for _, f := range failing {
				if f == name {
					err = errRefused
				}
			}
			makeCalls(g, 3, 3*time.Millisecond, err)
		}
	})
	return sources
}

// monitorOf returns a running monitor with a rule that fires, or does not, and a notifier.
func monitorOf(t *testing.T, fires bool, notified error) *alert.Monitor {
	pager := alert.Func("pagerduty", func(context.Context, alert.Alert) error { return notified })
	m := alert.NewMonitor(alert.Config{Interval: 100 * time.Millisecond, Notify: []alert.Notifier{pager}, Logger: slog.New(slog.DiscardHandler)},
		alert.Rule{Name: "disk is full", Severity: "page", Value: alert.Gauge(func() float64 { return 97 }), When: alert.Above(90)},
		alert.Rule{Name: "queue is long", Severity: "ticket", Value: alert.Gauge(func() float64 { return 12 }), When: alert.Above(1000)})
	if !fires {
		m = alert.NewMonitor(alert.Config{Interval: 100 * time.Millisecond, Notify: []alert.Notifier{pager}},
			alert.Rule{Name: "queue is long", Severity: "ticket", Value: alert.Gauge(func() float64 { return 12 }), When: alert.Above(1000)})
	}
	runUntilEnd(t, m)
	return m
}

// manyHosts returns 40 hosts, of which 30 fail for one cause.
func manyHosts(*testing.T) []stat.Source {
	sources := make([]stat.Source, 40)
	for n := range sources {
		host := weir.New(fmt.Sprintf("shop-%02d.example", n), weir.Config{Breaker: breaker.Config{Cooldown: time.Hour}})
		err := error(nil)
		if n < 30 {
			err = fmt.Errorf("Get %q: dial tcp 10.0.3.%d:443: connect: connection refused", "https://"+host.Name(), n)
		}
		makeCalls(host, 15, 0, err)
		sources[n] = host
	}
	return sources
}

const titleScript = `document.querySelector("h2").innerText`

var pageStates = []pageState{
	{"well", func(t *testing.T) []stat.Source {
		return append(storefront(t), monitorOf(t, false, nil))
	}, titleScript + ` === "Nothing needs attention"`, ""},
	{"outage", func(t *testing.T) []stat.Source {
		return append(storefront(t, "payments"), monitorOf(t, false, nil))
	}, titleScript + ` === "Needs attention: 1 source of 3"`, ""},
	{"alert", func(t *testing.T) []stat.Source {
		return append(storefront(t), monitorOf(t, true, nil))
	}, titleScript + ` === "Needs attention: 1 rule firing"`, ""},
	{"notifier", func(t *testing.T) []stat.Source {
		return append(storefront(t), monitorOf(t, true, errors.New("dial tcp: lookup events.pagerduty.com: no such host")))
	}, titleScript + ` === "Needs attention: 1 rule firing, 1 notifier failing"`, ""},
	{"gone", func(t *testing.T) []stat.Source {
		return append(storefront(t, "payments"), monitorOf(t, true, nil))
	}, titleScript + ` === "Needs attention: 1 rule firing, 1 source of 3"`, "when this needed attention: 1 rule firing, 1 source of 3"},
	{"gone-well", func(t *testing.T) []stat.Source {
		return append(storefront(t), monitorOf(t, false, nil))
	}, titleScript + ` === "Nothing needs attention"`, "when nothing needed attention"},
	{"many", manyHosts, titleScript + ` === "Needs attention: 30 sources of 40"`, ""},
}

// TestStates checks the states of the page with axe, wide and narrow, light and dark, and saves
// screenshots if the flag is set.
func TestStates(t *testing.T) {
	for _, state := range pageStates {
		t.Run(state.name, func(t *testing.T) {
			b, s := newTab(t), serve(t, dashboard.Config{Title: "storefront", Interval: time.Second}, state.sources(t)...)
			b.tolerateFailures()
			b.visit(s)
			b.waitUntil(state.reached)
			if *screenshots != "" {
				b.waitUntil(`performance.now() > 8000`)
			}
			if state.gone != "" {
				s.end()
				b.requireText("#status", "Reconnecting: data of ")
				require.Regexp(t, `^No data since \d+:\d\d:\d\d, `+state.gone+"$", eval[string](b, titleScript))
			}
			for _, width := range []int64{1280, 400} {
				for _, scheme := range []string{"light", "dark"} {
					b.setSize(width, 800)
					b.setColorScheme(scheme)
					require.Equal(t, int(width), eval[int](b, `document.documentElement.scrollWidth`), "nothing is wider than the screen")
					b.saveScreenshot(fmt.Sprintf("state-%s-%d-%s", state.name, width, scheme))
					b.requireAccessible(fmt.Sprintf("%s, %d, %s", state.name, width, scheme))
				}
			}
		})
	}
}

// Old data is dimmed, and says of when it is, wherever the page is scrolled to.
func TestOldDataSaysSoOnEveryScrollPosition(t *testing.T) {
	b, s := newTab(t), serve(t, quickConfig, manySources(120)...)
	b.tolerateFailures()
	b.setSize(400, 800)
	b.visit(s)
	b.requireText("#status", "Live")
	require.False(t, eval[bool](b, `"old" in document.body.dataset`))
	s.end()
	b.waitUntil(`"old" in document.body.dataset`)
	require.Regexp(t, `^Reconnecting: data of \d+:\d\d:\d\d, \d+ s ago$`, b.text("#status"))
	require.NotEqual(t, "none", eval[string](b, `getComputedStyle(document.querySelector("main")).filter`), "dimmed")
	for _, y := range []int{0, 600, 3000} {
		b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`scrollTo(0, %d)`, y)))
		b.waitUntil(fmt.Sprintf(`scrollY === %d`, y))
		require.GreaterOrEqual(t, eval[float64](b, `document.querySelector("#status").getBoundingClientRect().top`), 0.0, y)
		require.True(t, eval[bool](b, `(r => document.querySelector("#status").contains(document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2)))(document.querySelector("#status").getBoundingClientRect())`), "in front, at %d", y)
	}
	require.Equal(t, 400, eval[int](b, `document.documentElement.scrollWidth`))
}

// The connection stands, and the server sends nothing more: a source blocks the sampling.
func TestDataOfAServerThatHangsIsOld(t *testing.T) {
	hang := make(chan struct{})
	var hangs hangingSource
	b, s := newTab(t), serve(t, quickConfig, breaker.New("bank", breaker.Config{}), &hangs)
	t.Cleanup(func() { close(hang) })
	b.tolerateFailures()
	b.visit(s)
	b.requireText("#status", "Live")
	hangs.until.Store(&hang)
	b.waitUntil(`"old" in document.body.dataset`)
	require.Regexp(t, `: data of \d+:\d\d:\d\d, \d+ s ago$`, b.text("#status"))
	require.Regexp(t, `^No data since \d+:\d\d:\d\d, when nothing needed attention$`, eval[string](b, titleScript))
	require.Equal(t, "No breaker was open then, and no limit refused calls.", b.text(".problems + p"))
	require.Regexp(t, `^No data since`, eval[string](b, `location.hash = "#x", new Promise(done => setTimeout(done, 100)).then(() => {
		location.hash = "";
		return new Promise(done => addEventListener("hashchange", () => done(`+titleScript+`), {once: true}));
	})`), "when the overview is opened again")
}

func TestSourcesWithOneCauseAreOneBlock(t *testing.T) {
	sources := manyHosts(t)
	other := breaker.New("mail", breaker.Config{Cooldown: time.Hour})
	failUntilOpen(t, other)
	b, s := newTab(t), serve(t, quickConfig, append(sources, other)...)
	b.visit(s)
	b.waitUntil(titleScript + ` === "Needs attention: 31 sources of 41"`)
	b.waitUntil(`document.querySelectorAll(".problems li").length === 2`)
	shared := eval[string](b, `[...document.querySelectorAll(".problems li")].find(l => l.innerText.includes("30 sources with one cause")).innerText`)
	require.Contains(t, shared, "shop-00.example")
	require.Contains(t, shared, "and 22 more")
	require.Contains(t, shared, "connection refused")
	require.Regexp(t, `first of them: `, shared)
	require.Contains(t, shared, "all calls through these 30 sources")
	b.requireAccessible("sources with one cause")
}

func TestInvisibleNamesAreShown(t *testing.T) {
	b, s := newTab(t), serve(t, quickConfig, openBreaker(t, " "), openBreaker(t, "\u200b"), breaker.New("bank", breaker.Config{}))
	b.visit(s)
	b.waitUntil(`document.querySelectorAll(".sources tbody a").length === 3`)
	names := eval[string](b, `[...document.querySelectorAll(".sources tbody a")].map(a => a.innerText).join()`)
	require.Contains(t, names, "(invisible: U+0020)")
	require.Contains(t, names, "(invisible: U+200B)")
	require.Contains(t, eval[string](b, `document.querySelector(".problems .names").innerText`), "(invisible: U+")
}

func TestFailingNotifiersAreNotGrey(t *testing.T) {
	b, s := newTab(t), serve(t, quickConfig, monitorOf(t, true, errors.New("no route to the pager")))
	b.visit(s)
	b.waitUntil(`[...document.querySelectorAll(".aside .badge")].some(s => s.innerText === "failing" && s.dataset.state === "firing")`)
	b.requireText(".problems", "it is tried again, and its alerts wait")
	b.requireText(".problems", "resolves when the value is below 90")
}
