package browser_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/dashboard"
	"github.com/weir-go/weir/stat"
)

// quickConfig has the sample interval of the pages in tests.
var quickConfig = dashboard.Config{Title: "storefront", Interval: 100 * time.Millisecond}

const statesScript = `[...document.querySelectorAll(".sources tbody tr")].map(r => r.querySelector("a").innerText + ": " + r.querySelector(".badge").innerText).join()`

func TestTransitionsAreShownAndAnnounced(t *testing.T) {
	bank, post := breaker.New("bank", breaker.Config{Cooldown: 5 * time.Second}), breaker.New("post", breaker.Config{Cooldown: 5 * time.Second})
	b, s := newTab(t), serve(t, quickConfig, bank, post)
	b.visit(s)
	b.requireText("#status", "Live")
	require.Equal(t, "bank: closed,post: closed", eval[string](b, statesScript))
	require.Contains(t, b.text(".aside"), "None since this page was opened.")

	failUntilOpen(t, post)
	// sorted by severity, without a reload
	b.waitUntil(statesScript + ` === "post: open,bank: closed"`)
	b.requireText(".change", "post")
	b.requireText(".chip", "1 open")
	require.Equal(t, "post is now open", b.text("#spoken"))

	// The state is shown by a shape and a word, not only by a color.
	require.Equal(t, "#shape-open", eval[string](b, `document.querySelector(".sources tbody use").getAttribute("href")`))
	require.Positive(t, eval[float64](b, `document.querySelector(".sources tbody .shape").getBoundingClientRect().width`))
	b.waitUntil(`document.querySelector(".sources .bad").getAttribute("d").startsWith("M")`)
}

func TestASourceThatFlapsTakesOneRow(t *testing.T) {
	post := breaker.New("post", breaker.Config{Cooldown: time.Hour})
	b, s := newTab(t), serve(t, quickConfig, post)
	b.visit(s)
	for range 3 {
		failUntilOpen(t, post)
		b.waitUntil(statesScript + ` === "post: open"`)
		post.Reset()
		b.waitUntil(statesScript + ` === "post: closed"`)
	}
	b.requireText(".change", "6 changes in")
	require.Equal(t, 1, eval[int](b, `document.querySelectorAll(".change").length`))
	b.requireText(".aside", "3 incidents since")
	require.Contains(t, b.text(".problems + p"), "No breaker is open")
}

// failUntilOpen makes failed calls until the breaker opens.
func failUntilOpen(t *testing.T, b *breaker.Breaker) {
	t.Helper()
	for range 20 {
		_ = b.Run(t.Context(), func(context.Context) error { return fmt.Errorf("down") })
	}
	require.True(t, b.Tripped())
}

func TestPageWorksByKeyboardAlone(t *testing.T) {
	b, s := newTab(t), serve(t, quickConfig, breaker.New("bank", breaker.Config{Cooldown: 5 * time.Second}), openBreaker(t, "post"), breaker.New("shelf", breaker.Config{}))
	b.visit(s)
	b.press("/")
	require.Equal(t, "search", eval[string](b, "document.activeElement.type"))
	b.press("s", "h", "e")
	require.Equal(t, "she", eval[string](b, "document.activeElement.value"))
	require.Equal(t, "shelf: closed", eval[string](b, statesScript))
	b.press("Escape")
	require.Equal(t, "post: open,bank: closed,shelf: closed", eval[string](b, statesScript))

	b.press("Tab")
	require.Equal(t, "Name", eval[string](b, "document.activeElement.innerText"))
	b.press("Enter")
	require.Equal(t, "bank: closed,post: open,shelf: closed", eval[string](b, statesScript))
	require.Equal(t, "ascending", eval[string](b, `document.activeElement.closest("th").ariaSort`))
	b.press("Enter")
	require.Equal(t, "descending", eval[string](b, `document.activeElement.closest("th").ariaSort`))
	require.Equal(t, "shelf: closed,post: open,bank: closed", eval[string](b, statesScript))

	for eval[string](b, "document.activeElement.innerText") != "post" {
		b.press("Tab")
	}
	require.NotEqual(t, "none", eval[string](b, "getComputedStyle(document.activeElement).outlineStyle"), "the focus is visible")
	b.press("Enter")
	b.requireText("h1", "post")
	require.Equal(t, "H1", eval[string](b, "document.activeElement.tagName"))

	for eval[string](b, "document.activeElement.role ?? ''") != "slider" {
		b.press("Tab")
	}
	b.waitUntil(`+document.activeElement.ariaValueMax > 3`)
	b.press("Home")
	require.Equal(t, "0", eval[string](b, "document.activeElement.ariaValueNow"))
	require.Regexp(t, `^\d\d:\d\d:\d\d: successful –, failed –, refused –$`, eval[string](b, "document.activeElement.ariaValueText"))
	b.press("ArrowRight")
	require.Equal(t, "1", eval[string](b, "document.activeElement.ariaValueNow"))
	require.Regexp(t, `successful 0/s`, eval[string](b, "document.activeElement.ariaValueText"))

	b.press("Escape")
	b.requireText("h1", "Sources")
	require.Equal(t, "post", eval[string](b, "document.activeElement.innerText"), "the focus has returned")
}

// openBreaker returns an open breaker.
func openBreaker(t *testing.T, name string) *breaker.Breaker {
	t.Helper()
	b := breaker.New(name, breaker.Config{Cooldown: time.Hour})
	failUntilOpen(t, b)
	return b
}

func TestSearchAndStatesNarrowTheTable(t *testing.T) {
	b, s := newTab(t), serve(t, quickConfig, append(manySources(120), openBreaker(t, "post"))...)
	b.visit(s)
	require.Equal(t, 50, eval[int](b, `document.querySelectorAll(".sources tbody tr").length`))
	require.Equal(t, "1–50 of 121 sources", b.text(".pager [role=status]"))
	b.click(".pager button:last-of-type")
	b.click(".pager button:last-of-type")
	require.Equal(t, "101–121 of 121 sources", b.text(".pager [role=status]"))

	b.do(chromedp.SendKeys(chromedp.CSS("input[type=search]"), "SERVICE-011"))
	require.Equal(t, 10, eval[int](b, `document.querySelectorAll(".sources tbody tr").length`))
	b.do(chromedp.SendKeys(chromedp.CSS("input[type=search]"), "x"))
	b.requireText(".empty", "No sources match.")
	b.press("Escape")

	b.click(".chip:nth-child(2)")
	require.Equal(t, "post: open", eval[string](b, statesScript))
	require.Equal(t, "true", eval[string](b, `document.querySelector(".chip:nth-child(2)").ariaPressed`))
	b.requireAccessible("with a state selected")
	b.click(".chip:first-child")
	require.Equal(t, 50, eval[int](b, `document.querySelectorAll(".sources tbody tr").length`))
}

// TestAThousandSourcesStaySmall logs times, but does not bound them, because they depend on the
// machine. It bounds the number of elements, on which the times depend too.
func TestAThousandSourcesStaySmall(t *testing.T) {
	b := newTab(t)
	b.visit(serve(t, dashboard.Config{}, manySources(1000)...))
	b.waitUntil(`performance.getEntriesByName("first-contentful-paint").length && performance.getEntriesByName("weir:shown").length`)
	t.Logf("first contentful paint after %.0f ms, 1,000 sources shown after %.0f ms",
		eval[float64](b, `performance.getEntriesByName("first-contentful-paint")[0].startTime`),
		eval[float64](b, `performance.getEntriesByName("weir:shown")[0].startTime`))
	require.Equal(t, "1–50 of 1,000 sources", b.text(".pager [role=status]"))
	elements := eval[int](b, `document.querySelectorAll("*").length`)
	t.Logf("%d elements", elements)
	require.Less(t, elements, 1500)

	// A search renders the table again.
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("input").focus()`))
	begin := eval[float64](b, "performance.now()")
	b.press("9", "9", "9")
	b.waitUntil(`document.querySelectorAll(".sources tbody tr").length === 1`)
	t.Logf("found one of them within %.0f ms", eval[float64](b, "performance.now()")-begin)
	b.requireAccessible("a thousand sources")
	b.press("Escape")
	b.saveScreenshot("thousand")
}

func TestNothingIsWiderThanAPhone(t *testing.T) {
	shop := newShop()
	shop.startCallers(t)
	sources := append(manySources(60), shop.sources...)
	sources = append(sources, openBreaker(t, strings.Repeat("verylongname", 900)), openBreaker(t, strings.Repeat("many short words ", 600)))
	b, s := newTab(t), serve(t, quickConfig, sources...)
	b.setSize(375, 800)
	b.visit(s)
	const wide = `document.documentElement.scrollWidth`
	require.Equal(t, 375, eval[int](b, wide), "the table")
	for n := range 4 {
		b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`document.querySelectorAll(".sources tbody a")[%d].click()`, n)))
		b.waitUntil(`document.querySelector(".plot path") && document.querySelector(".metrics dt")`)
		require.Equal(t, 375, eval[int](b, wide), b.text("h1")[:10])
		require.LessOrEqual(t, eval[float64](b, `document.querySelector("h1").getBoundingClientRect().height`), 200.0)
		b.press("Escape")
		b.requireText("h1", "Sources")
	}
	require.Equal(t, "table", eval[string](b, `document.querySelector(".sources").role`), "a screen reader sees the cards as a table")
	require.Equal(t, "row", eval[string](b, `document.querySelector(".sources tbody tr").role`))
}

func TestPagePollsIfThereIsNoStream(t *testing.T) {
	bank := breaker.New("bank", breaker.Config{Cooldown: 5 * time.Second})
	b, s := newTab(t), serve(t, quickConfig, bank)
	b.tolerateFailures()

	ctx, leave := context.WithCancel(t.Context())
	for range 32 { // the most streams that the page serves at once
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"stream", http.NoBody)
		require.NoError(t, err)
		other, err := s.Client().Do(r)
		require.NoError(t, err)
		t.Cleanup(func() { _ = other.Body.Close() })
	}
	b.visit(s)
	b.requireText("#status", "Polling")
	failUntilOpen(t, bank)
	b.waitUntil(statesScript + ` === "bank: open"`)
	b.requireText(".change", "bank")

	leave()
	b.requireText("#status", "Live") // the page has tried again
}

func TestPageReconnectsWhenTheServerReturns(t *testing.T) {
	bank := breaker.New("bank", breaker.Config{Cooldown: 5 * time.Second})
	b, s := newTab(t), serve(t, quickConfig, bank)
	b.tolerateFailures()
	b.visit(s)
	b.requireText("#status", "Live")

	address := s.Listener.Addr().String()
	s.CloseClientConnections()
	s.Close()
	b.requireText("#status", "Reconnecting")
	require.Equal(t, "bank: closed", eval[string](b, statesScript), "the last values stay")

	again := &http.Server{Addr: address, Handler: s.Config.Handler, ReadHeaderTimeout: time.Second}
	go func() { _ = again.ListenAndServe() }()
	t.Cleanup(func() { _ = again.Close() })
	failUntilOpen(t, bank)
	b.requireText("#status", "Live")
	b.waitUntil(statesScript + ` === "bank: open"`)
}

func TestPageReportsABrokenSource(t *testing.T) {
	old := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { slog.SetDefault(old) })
	b, s := newTab(t), serve(t, quickConfig, breaker.New("bank", breaker.Config{Cooldown: 5 * time.Second}), &panickingSource{})
	b.visit(s)
	b.requireText("#faults", "ended in a panic")
	require.Equal(t, "bank: closed", eval[string](b, statesScript))
	b.requireAccessible("with a notice")
}

type panickingSource struct{}

func (*panickingSource) Observe(func(*stat.Series, float64) bool) { panic("broken") }

func TestPageReportsARemovedSource(t *testing.T) {
	bank := breaker.New("bank", breaker.Config{Cooldown: 5 * time.Second})
	b, s := newTab(t), serve(t, quickConfig, bank)
	b.tolerateFailures()
	b.visit(s)
	b.click(".sources tbody a")
	b.requireText("h1", "bank")
	s.page.Remove(bank)
	b.requireText(".source .notice", "This source has been removed.")
	b.press("Escape")
	b.requireText(".empty", "There are no sources yet.")
	b.requireAccessible("without sources")
}

// countingSource is a source that counts how often it was read.
type countingSource struct {
	*breaker.Breaker
	reads atomic.Int64
}

func (c *countingSource) Observe(yield func(*stat.Series, float64) bool) {
	c.reads.Add(1)
	c.Breaker.Observe(yield)
}

func TestAHiddenPageCausesNoSampling(t *testing.T) {
	source := &countingSource{Breaker: breaker.New("bank", breaker.Config{Cooldown: 5 * time.Second})}
	b, s := newTab(t), serve(t, quickConfig, source)
	b.visit(s)
	b.requireText("#status", "Live")
	hide := func(hidden bool) {
		b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(
			`Object.defineProperty(document, "hidden", {value: %v, configurable: true}); document.dispatchEvent(new Event("visibilitychange"))`, hidden)))
	}
	hide(true)
	b.requireText("#status", "Paused")
	b.waitUntil(`performance.now() > 1000`)
	before := source.reads.Load()
	b.waitUntil(`performance.now() > 3000`)
	require.LessOrEqual(t, source.reads.Load(), before+1)

	hide(false)
	b.requireText("#status", "Live")
	require.Eventually(t, func() bool { return source.reads.Load() > before+3 }, time.Minute, 20*time.Millisecond)
}
