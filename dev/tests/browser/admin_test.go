package browser_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/admin"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/dashboard"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// serveAdmin serves the page and a handler of package admin that allows every request.
func serveAdmin(t *testing.T, sources ...stat.Source) *site {
	page, err := dashboard.New(dashboard.Config{Interval: 100 * time.Millisecond, Admin: "/admin/weir/"}, sources...)
	require.NoError(t, err)
	everybody := func(*http.Request, admin.Action) (string, error) { return "alice", nil }
	ops, err := admin.New(admin.Config{Authorize: everybody}, sources...)
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/debug/weir/", http.StripPrefix("/debug/weir", page))
	mux.Handle("/admin/weir/", http.StripPrefix("/admin/weir", ops))
	s := &site{Server: httptest.NewServer(mux), page: page}
	t.Cleanup(func() {
		page.Close()
		s.CloseClientConnections()
		s.Close()
	})
	s.url = s.URL + "/debug/weir/"
	return s
}

const openSource = `(name => { [...document.querySelectorAll(".sources tbody a")].find(a => a.innerText === name).click(); return true })`

const pressAction = `(says => { const b = [...document.querySelectorAll(".actions button")].find(b => b.innerText === says); b.click(); return true })`

func TestButtonsActWhereTheAdminHandlerIsMounted(t *testing.T) {
	g := weir.New("payments", weir.Config{Rate: limiter.PerSecond(100)})
	hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{})
	hosts.Get("a / b")
	b, s := newTab(t), serveAdmin(t, g, hosts)
	b.visit(s)
	eval[bool](b, `(window.confirm = () => true) && true`)
	eval[bool](b, openSource+`("payments")`)
	b.waitUntil(`document.querySelectorAll(".actions button").length === 7`)
	b.requireAccessible("with actions")
	eval[bool](b, pressAction+`("Force open")`)
	b.waitUntil(`document.querySelector(".actions").innerText.includes("End of the override:")`)
	require.Equal(t, breaker.ForcedOpen, g.Breaker().State())
	eval[bool](b, pressAction+`("Release")`)
	b.waitUntil(`document.querySelector(".actions [role=status]").innerText === "Release: done."`)
	require.Equal(t, breaker.Closed, g.Breaker().State())

	eval[bool](b, `(document.querySelector("[data-field=rate]").value = "7/s") && true`)
	eval[bool](b, pressAction+`("Change limits")`)
	b.waitUntil(`document.querySelector(".actions").innerText.includes("End of the limits:")`)
	require.Equal(t, 7, g.Limiter().Take(0).Limit)

	b.press("Escape")
	b.requireText("h1", "Sources")
	b.waitUntil(`document.querySelector(".sources tbody").innerText.includes("hosts / a / b")`)
	eval[bool](b, openSource+`("hosts / a / b")`)
	b.waitUntil(`document.querySelectorAll(".actions button").length === 12`)
	eval[bool](b, pressAction+`("Force closed")`)
	b.waitUntil(`document.querySelector(".actions [role=status]").innerText === "Force closed: done."`)
	require.Equal(t, breaker.ForcedClosed, hosts.Get("a / b").Breaker().State())
	eval[bool](b, pressAction+`("Force open all")`)
	b.waitUntil(`document.querySelector(".actions [role=status]").innerText === "Force open all: done."`)
	require.Equal(t, breaker.ForcedOpen, hosts.Get("new").Breaker().State())
	eval[bool](b, pressAction+`("Release all")`)
	b.waitUntil(`document.querySelector(".actions [role=status]").innerText === "Release all: done."`)
	require.Equal(t, breaker.ForcedClosed, hosts.Get("a / b").Breaker().State())
	require.Equal(t, breaker.Closed, hosts.Get("new").Breaker().State())
}

func TestButtonsSilenceAnAlert(t *testing.T) {
	monitor := alert.NewMonitor(alert.Config{Instance: "web-1", Notify: []alert.Notifier{alert.Log(slog.New(slog.DiscardHandler))}}, alert.Rule{
		Name: `payments "fail"`, Value: alert.Bool(func() bool { return true }), When: alert.Above(0), Severity: "page",
	})
	monitor.Evaluate(time.Now())
	b, s := newTab(t), serveAdmin(t, monitor)
	b.visit(s)
	open := `(name => { [...document.querySelectorAll("main a")].find(a => a.innerText.includes(name)).click(); return true })`
	eval[bool](b, open+`("payments")`)
	b.waitUntil(`document.querySelectorAll(".actions button").length === 1`)
	b.requireAccessible("with silences")
	eval[bool](b, pressAction+`("Silence")`)
	b.waitUntil(`document.querySelectorAll(".actions button").length === 2`)
	silences := monitor.Silences()
	require.Equal(t, []string{`alertname="payments \"fail\""`, `severity="page"`}, silences[0].Match)
	monitor.Evaluate(time.Now())
	require.NotEmpty(t, monitor.Alerts()[0].SilencedBy)
	eval[bool](b, pressAction+`(`+quote("End the silence "+silences[0].Name)+`)`)
	b.waitUntil(`document.querySelectorAll(".actions button").length === 1`)
	require.Empty(t, monitor.Silences())
}

func TestPageWithoutTheAdminHandlerHasNoButtons(t *testing.T) {
	b, s := newTab(t), serve(t, quickConfig, weir.New("payments", weir.Config{}))
	b.visit(s)
	eval[bool](b, openSource+`("payments")`)
	b.waitUntil(`document.querySelectorAll(".tiles div").length > 0`)
	require.Equal(t, 0, eval[int](b, `document.querySelectorAll(".actions").length`))
}
