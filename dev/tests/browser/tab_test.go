package browser_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testenv"
)

var screenshots = flag.String("screenshots", "", "save screenshots in this folder")

// tab is a tab of the browser. The test fails at its end if the page has written to the console or
// requested anything from another host.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	excused  bool     // the test expects network errors
	messages []string // in the console
	asked    []string // requested addresses
}

// chrome is the browser that all tests share. Each test has a separate tab.
var chrome struct {
	start sync.Once
	ctx   context.Context
	stop  func()
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if chrome.stop != nil {
		chrome.stop()
	}
	os.Exit(code)
}

// startChrome starts the browser, unless it runs.
func startChrome(t *testing.T) {
	t.Helper()
	path := chromium(t)
	chrome.start.Do(func() {
		flags := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path),
			chromedp.Flag("disable-component-update", true),
			chromedp.Flag("hide-scrollbars", true),
		)
		if os.Geteuid() == 0 {
			flags = append(flags, chromedp.NoSandbox)
		}
		allocator, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), flags...)
		ctx, cancel := chromedp.NewContext(allocator)
		chrome.ctx, chrome.stop = ctx, func() {
			_ = chromedp.Cancel(ctx)
			cancel()
			stop()
		}
		require.NoError(t, chromedp.Do(ctx, chromedp.Navigate("about:blank")))
	})
}

// newTab opens a tab.
func newTab(t *testing.T) *tab {
	t.Helper()
	startChrome(t)
	ctx, cancel := chromedp.NewContext(chrome.ctx)
	t.Cleanup(cancel) // closes the tab
	b := &tab{t: t, ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, b.handleEvent))
	t.Cleanup(b.checkConsole)
	b.setSize(1440, 900)
	b.setColorScheme("light")
	return b
}

// chromium returns the path of the browser. Debian starts it by a script that prints warnings, so
// the program itself is preferred.
func chromium(t *testing.T) string {
	t.Helper()
	return testenv.Program(t, "/usr/lib/chromium/chromium", "chromium", "chromium-browser", "google-chrome")
}

func (b *tab) handleEvent(event any) {
	if b.t.Context().Err() != nil {
		// the test is over, and the server has closed the stream of the page
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		b.messages = append(b.messages, string(e.Type))
	case *runtime.EventExceptionThrown:
		b.messages = append(b.messages, exceptionText(e))
	case *log.EventEntryAdded:
		if !b.excused || string(e.Entry.Source) != "network" {
			b.messages = append(b.messages, e.Entry.Text+" "+e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		b.asked = append(b.asked, e.Request.URL)
	}
}

// tolerateFailures tolerates failed requests, for tests that cause them.
func (b *tab) tolerateFailures() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.excused = true
}

// checkConsole fails the test for console messages and requests to other hosts.
func (b *tab) checkConsole() {
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b.t, b.messages, "in the browser's console")
	for _, address := range b.asked {
		require.Regexp(b.t, `^(http://127\.0\.0\.1:\d+/(debug|admin)/weir/|about:blank)`, address, "the page requests another host")
	}
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, actions...))
}

// eval returns the value of a JavaScript expression.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err, expression)
	return value
}

// waitUntil waits until an expression is true.
func (b *tab) waitUntil(expression string) {
	b.t.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingTimeout(15*time.Second)))
	if err != nil {
		require.NoError(b.t, err, "waiting for %s on a page that says\n%s", expression, eval[string](b, "document.body.innerText"))
	}
}

// text returns the text of an element.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return eval[string](b, `document.querySelector(`+quote(selector)+`).innerText`)
}

// requireText waits until the text of an element contains something.
func (b *tab) requireText(selector, what string) {
	b.t.Helper()
	b.waitUntil(`[...document.querySelectorAll(` + quote(selector) + `)].some(e => e.innerText.includes(` + quote(what) + `))`)
}

func (b *tab) click(selector string) { b.t.Helper(); b.do(chromedp.Click(chromedp.CSS(selector))) }

// press presses keys: named keys and characters.
func (b *tab) press(keys ...string) {
	b.t.Helper()
	for _, k := range keys {
		b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			p := input.DispatchKeyEventParams{
				Type: input.DispatchKeyEventTypeKeyDown, Key: k, Text: typedText[k], WindowsVirtualKeyCode: keyCodes[k],
			}
			if len(k) == 1 {
				p.Text = k
			}
			_, err := cdp.Call(ctx, target, input.DispatchKeyEvent, p)
			p.Type, p.Text = input.DispatchKeyEventTypeKeyUp, ""
			_, err2 := cdp.Call(ctx, target, input.DispatchKeyEvent, p)
			return errors.Join(err, err2)
		}))
	}
}

// The effects of named keys.
var (
	keyCodes  = map[string]int64{"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39}
	typedText = map[string]string{"Enter": "\r"}
)

func (b *tab) setSize(width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
}

// setColorScheme sets the preferred color scheme: light or dark.
func (b *tab) setColorScheme(name string) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		})
		return err
	}))
}

// saveScreenshot saves a screenshot of the whole page, if the flag is set.
func (b *tab) saveScreenshot(name string) {
	b.t.Helper()
	if *screenshots == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(*screenshots, name+".png"), png, 0o600))
}

// axeViolation is a violation found by axe.
type axeViolation struct {
	ID    string
	Help  string
	Nodes []struct{ HTML, FailureSummary string }
}

// requireAccessible fails the test if axe finds a violation.
func (b *tab) requireAccessible(what string) {
	b.t.Helper()
	axe, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if errors.Is(err, fs.ErrNotExist) {
		testenv.Missing(b.t, "axe-core")
	}
	require.NoError(b.t, err)
	if !eval[bool](b, "'axe' in window") {
		eval[any](b, string(axe)+"; null")
	}
	var faults []axeViolation
	report := eval[string](b, `axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify(r.violations))`)
	require.NoError(b.t, json.Unmarshal([]byte(report), &faults))
	require.Empty(b.t, faults, what)
}

func quote(s string) string {
	quoted, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(quoted)
}

func exceptionText(e *runtime.EventExceptionThrown) string {
	if e.ExceptionDetails.Exception != nil {
		return e.ExceptionDetails.Exception.Description
	}
	return e.ExceptionDetails.Text
}
