package browser_test

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/weir-go/weir/exporters/dashboard"
)

// TestScreenshots checks every form of the page with axe, and saves screenshots if the flag is set.
func TestScreenshots(t *testing.T) {
	shop := newShop()
	shop.startCallers(t)
	b, s := newTab(t), serve(t, dashboard.Config{Title: "storefront", Interval: 250 * time.Millisecond, History: time.Minute}, shop.sources...)
	b.visit(s)
	b.waitUntil(`document.querySelector(".spark .good[d^=M]")`)
	if *screenshots != "" {
		b.waitUntil(`performance.now() > 12000`)
	}
	shop.down.Store(true)
	b.requireText(".sources tr", "open")
	b.requireText(".change", "search")
	b.requireText(".list", "firing")

	for _, form := range []struct {
		name          string
		width, height int64
	}{{"wide", 1440, 900}, {"tablet", 820, 1100}, {"phone", 375, 800}} {
		for _, scheme := range []string{"light", "dark"} {
			b.setSize(form.width, form.height)
			b.setColorScheme(scheme)
			b.do(chromedp.Evaluate[chromedp.Void]("location.hash = ''"))
			b.requireText("h1", "Sources")
			b.requireAccessible("table, " + form.name + ", " + scheme)
			b.saveScreenshot("table-" + form.name + "-" + scheme)
			for _, source := range []string{"search", "search is open"} {
				b.do(chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll("a")].find(a => a.innerText === "` + source + `").click()`))
				b.requireText("h1", source)
				b.waitUntil(`document.querySelector(".plot path")`)
				b.requireAccessible(source + ", " + form.name + ", " + scheme)
				b.saveScreenshot(source + "-" + form.name + "-" + scheme)
				b.press("Escape")
				b.requireText("h1", "Sources")
			}
		}
	}
}
