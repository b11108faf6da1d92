package browser_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/dashboard"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// An outage is a failure of one service among healthy ones, with the answers that the page has to
// give.
type outage struct {
	name    string
	sources func(t *testing.T) []stat.Source
	what    string
	answers map[string]string // parts of the answers
}

// makeCalls makes n simultaneous calls, each of which takes d and returns err.
func makeCalls(g interface {
	Run(ctx context.Context, fn func(context.Context) error) error
}, n int, d time.Duration, err error,
) {
	var calls sync.WaitGroup
	for range n {
		calls.Go(func() {
			_ = g.Run(context.Background(), func(context.Context) error {
				if d > 0 {
					<-time.NewTimer(d).C
				}
				return err
			})
		})
	}
	calls.Wait()
}

// repeatUntilEnd repeats f until the test ends.
func repeatUntilEnd(t *testing.T, f func()) {
	t.Helper()
	var work sync.WaitGroup
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(func() {
		cancel()
		work.Wait()
	})
	f()
	work.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				f()
			}
		}
	})
}

var outages = []outage{
	{"refused", func(t *testing.T) []stat.Source {
		bank := weir.New("bank", weir.Config{Breaker: breaker.Config{Cooldown: time.Minute, Latency: true}})
		users := weir.New("users", weir.Config{Breaker: breaker.Config{Latency: true}})
		repeatUntilEnd(t, func() {
			makeCalls(bank, 3, 0, errors.New("dial tcp 10.0.3.7:443: connect: connection refused"))
			makeCalls(users, 3, time.Millisecond, nil)
		})
		return []stat.Source{bank, users}
	}, "bank", map[string]string{"Since": "for ", "Last error": "connection refused", "Next": "a probe in ", "Affected": "all calls through bank; "}},

	{"hanging", func(t *testing.T) []stat.Source {
		c := breaker.Config{SlowCall: 20 * time.Millisecond, MinCalls: 5, Cooldown: time.Minute}
		search, users := breaker.New("search", c), breaker.New("users", c)
		repeatUntilEnd(t, func() {
			makeCalls(search, 1, 50*time.Millisecond, nil)
			makeCalls(users, 2, 0, nil)
		})
		return []stat.Source{search, users}
	}, "search", map[string]string{"Since": "for ", "Why": "took longer than 20 ms, limit 50%, ", "Next": "a probe in ", "Affected": "all calls through search"}},

	{"slow", func(t *testing.T) []stat.Source {
		c := breaker.Config{SlowCall: 5 * time.Millisecond, SlowRate: 0.9, Latency: true}
		maps, users := breaker.New("maps", c), breaker.New("users", c)
		n := 0
		repeatUntilEnd(t, func() {
			n++
			makeCalls(maps, 2, time.Duration(n%3)*8*time.Millisecond, nil)
			makeCalls(users, 2, 0, nil)
		})
		return []stat.Source{maps, users}
	}, "maps", map[string]string{"Since": "or earlier", "Why": "of the calls take longer than 5 ms, limit 90 %", "Next": "opens at 90 %", "Affected": "slow"}},

	{"partial", func(t *testing.T) []stat.Source {
		mail, users := breaker.New("mail", breaker.Config{FailureRun: breaker.Off}), breaker.New("users", breaker.Config{})
		repeatUntilEnd(t, func() {
			makeCalls(mail, 2, 0, nil)
			makeCalls(mail, 1, 0, errors.New("421 too many connections"))
			makeCalls(users, 2, 0, nil)
		})
		return []stat.Source{mail, users}
	}, "mail", map[string]string{"Since": "or earlier", "Why": "33 % of the calls fail", "Next": "opens at 50 %", "Affected": "all calls through mail; about "}},

	{"one-host", func(t *testing.T) []stat.Source {
		hosts := weir.NewGroup[string]("cdn", weir.GroupConfig{Gate: weir.Config{Breaker: breaker.Config{Cooldown: time.Minute, Latency: true}}})
		signup := weir.New("signup", weir.Config{Rate: limiter.Per(5, time.Minute), Burst: 5})
		repeatUntilEnd(t, func() {
			for n := range 4 {
				err := error(nil)
				if n == 2 {
					err = errors.New("tls: certificate has expired")
				}
				makeCalls(hosts.Get(fmt.Sprintf("edge-%c.eu-central.a-long-provider-name.example", 'a'+n)), 3, time.Millisecond, err)
			}
			makeCalls(signup, 1, 0, nil)
		})
		return []stat.Source{hosts, signup}
	}, "cdn / edge-c.eu-central.a-long-provider-name.example", map[string]string{
		"Since": "for ", "Last error": "certificate has expired", "Next": "a probe in ", "Affected": "calls for edge-c.eu-central.a-long-provider-name.example, a key of cdn",
	}},
}

// answerScript returns the answer about the first source in trouble.
const answerScript = `[...document.querySelectorAll(".problems li:first-child .answers > div")].find(d => d.firstChild.innerText === %q)?.lastChild.innerText ?? ""`

func TestTheFirstThingShownAnswersWhatSinceWhyNextAndWhom(t *testing.T) {
	b := newTab(t)
	for _, o := range outages {
		s := serve(t, dashboard.Config{Title: "storefront", Interval: 100 * time.Millisecond}, o.sources(t)...)
		b.setSize(1280, 800)
		b.setColorScheme("light")
		b.visit(s)
		b.waitUntil(`document.querySelector(".problems a")?.textContent === ` + quote(o.what))
		for question, part := range o.answers {
			b.waitUntil(fmt.Sprintf(answerScript, question) + `.includes(` + quote(part) + `)`)
		}
		require.Less(t, eval[float64](b, `document.querySelector(".problems li").getBoundingClientRect().bottom`), 800.0, "without scrolling")
		if o.name == "one-host" {
			b.requireText(".problems", "the limit of 5/min is used up")
			b.requireText(".problems", "the next call can pass in ")
		}
		b.requireAccessible(o.name)
		b.outageShots(o.name)
	}
}

// outageShots saves screenshots of the page in its forms, if the flag is set.
func (b *tab) outageShots(name string) {
	if *screenshots == "" {
		return
	}
	b.waitUntil(`performance.now() > 6000`)
	for _, width := range []int64{1280, 400} {
		for _, scheme := range []string{"light", "dark"} {
			b.setSize(width, 800)
			b.setColorScheme(scheme)
			b.saveScreenshot(fmt.Sprintf("outage-%s-%d-%s", name, width, scheme))
		}
	}
	b.setSize(1280, 800)
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".problems a").click()`))
	b.waitUntil(`document.querySelector(".plot path")`)
	b.saveScreenshot("outage-" + name + "-source")
}

func TestMembersOfAGroupSayWhyAndShowTheirSettings(t *testing.T) {
	hosts := breaker.NewGroup[string]("hosts", breaker.GroupConfig{Breaker: breaker.Config{Cooldown: time.Hour, Latency: true}})
	key := "eu." + strings.Repeat("very-long-", 20) + "host.example"
	b, s := newTab(t), serve(t, quickConfig, hosts)
	failUntilOpen(t, hosts.Get(key))
	b.setSize(400, 800)
	b.visit(s)
	b.waitUntil(`document.querySelector(".problems a")`)
	require.Equal(t, 400, eval[int](b, `document.documentElement.scrollWidth`))

	// The name is cut in the middle: its end is visible, and all of it on focus.
	cut := `document.querySelector(".problems .cut")`
	require.Equal(t, "hosts / "+key, eval[string](b, cut+`.textContent`))
	require.Less(t, eval[float64](b, cut+`.firstChild.getBoundingClientRect().right`), 400.0)
	require.Less(t, eval[float64](b, cut+`.lastChild.getBoundingClientRect().right`), 400.0, "the end is visible")
	low := eval[float64](b, cut+`.getBoundingClientRect().height`)
	for eval[string](b, `document.activeElement.closest(".problems") ? "yes" : ""`) == "" {
		b.press("Tab")
	}
	require.Greater(t, eval[float64](b, cut+`.getBoundingClientRect().height`), 2*low, "all of the name is shown")
	require.Equal(t, 400, eval[int](b, `document.documentElement.scrollWidth`))

	b.press("Enter")
	b.requireText(".reason", "11 of the last 11 calls failed")
	require.Contains(t, b.text("[aria-label='Last failures']"), "down")
	b.requireText("[aria-label='Incidents']", "until now")
	require.Equal(t, "details", eval[string](b, `document.querySelector("details").localName`))
	b.click("summary")
	b.requireText(".settings", "FailureRate")
	require.Contains(t, b.text(".settings"), "50 %")
	b.requireAccessible("a member of a group")
}

func TestAThousandOpenBreakersStaySmall(t *testing.T) {
	sources := make([]stat.Source, 1000)
	for n := range sources {
		sources[n] = openBreaker(t, fmt.Sprintf("service-%04d", n))
	}
	b, s := newTab(t), serve(t, quickConfig, sources...)
	b.visit(s)
	b.requireText(".problems", "1,000 sources with one cause")
	elements := eval[int](b, `document.querySelectorAll("*").length`)
	changed := eval[int](b, `new Promise(done => {
		let n = 0;
		const watch = new MutationObserver(all => { n += all.length; });
		watch.observe(document.body, {subtree: true, childList: true, characterData: true, attributes: true});
		setTimeout(() => { watch.disconnect(); done(n); }, 1100);
	})`)
	t.Logf("%d elements, %d changes of the document in 1.1 s", elements, changed)
	require.Less(t, elements, 2500)
	require.Less(t, changed, 3000, "eleven samples of 1,000 open breakers, of which 58 are shown")
}
