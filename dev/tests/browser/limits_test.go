package browser_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/limiter"
)

func TestLimitsAreShownAsTheyWereConfigured(t *testing.T) {
	perSecond, perMinute := limiter.PerSecond(100), limiter.PerMinute(60)
	bucket := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: perSecond, Burst: 25, Name: "bucket"})
	minute := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: perMinute, Burst: 60, Name: "minute"})
	fixed := limiter.NewFixedWindow(limiter.WindowConfig{Limit: 5, Window: 10 * time.Second, Name: "fixed"})
	big := limiter.NewFixedWindow(limiter.WindowConfig{Limit: 12345, Window: time.Hour, Name: "big"})
	gate := weir.New("gate", weir.Config{Rate: perSecond, Burst: 25})
	group := weir.NewGroup[string]("group", weir.GroupConfig{Gate: weir.Config{Rate: perSecond, Burst: 25}})
	b, s := newTab(t), serve(t, quickConfig, bucket, minute, fixed, big, gate, group)
	repeatUntilEnd(t, func() {
		for _, l := range []limiter.Limiter{bucket, minute, fixed} {
			for range 10 {
				l.Take(1)
			}
		}
		big.Take(500)
		for _, g := range []*weir.Gate{gate, group.Get("a")} {
			makeCalls(g, 10, 0, nil)
		}
	})
	b.visit(s)
	for name, want := range map[string]string{
		"bucket": "100/s with a burst of 25", "gate": "100/s with a burst of 25", "group": "100/s with a burst of 25",
		"minute": "60/min", "fixed": "5 per 10 s", "big": "12,345/h",
	} {
		b.waitUntil(`[...document.querySelectorAll(".problems li")].some(l => l.querySelector("a").innerText === ` + quote(name) +
			` && l.innerText.includes(` + quote("the limit of "+want+" is used up") + `))`)
	}
	for in, want := range map[string]string{
		`{limit: 10, period: 90}`: "10 per 90 s", `{limit: 10, period: 0.25}`: "10 per 250 ms", `{limit: 5000, period: 172800}`: "5,000 per 2 d",
		`{limit: 10, period: 1.5}`: "10 per 1.5 s", `{limit: 0.5, period: 1}`: "0.5/s", `{limit: 1234567, period: null}`: "1,234,567 at once",
		`{limit: 100, period: 86400, burst: 12345}`: "100/d with a burst of 12,345",
	} {
		require.Equal(t, want, eval[string](b, `import(document.querySelector("link[href$='words.js']").href).then(m => m.limitText(`+in+`))`), in)
	}
}
