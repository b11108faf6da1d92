package weirhttp_test

import (
	"context"
	"log"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/weirhttp"
)

// callbacks are called by an object that use uses, and delay themselves if they are slow.
type callbacks struct {
	use    func() // calls every method of the object
	inside atomic.Bool
	slow   atomic.Bool
	only   string // the callback that is slow; "" for all
	mu     sync.Mutex
	called map[string]int
}

// by notes a call of a callback by its name.
func (c *callbacks) by(name string) {
	c.mu.Lock()
	c.called[name]++
	c.mu.Unlock()
	if c.slow.Load() && (c.only == "" || c.only == name) {
		time.Sleep(time.Hour)
		return
	}
	if !c.inside.Swap(true) {
		c.use()
		c.inside.Store(false)
	}
}

func (c *callbacks) onRefusal(*http.Request, weirhttp.Refusal) { c.by("OnRefusal") }

func (c *callbacks) answer(w http.ResponseWriter, r *http.Request, f weirhttp.Refusal) {
	c.by("Answer")
	f.WriteProblem(w, r)
}

func (c *callbacks) Take(context.Context, int) (limiter.Result, error) {
	c.by("Remote")
	return limiter.Result{OK: true}, nil
}

func (c *callbacks) Handle(context.Context, slog.Record) error { c.by("slog.Handler"); return nil }
func (*callbacks) Enabled(context.Context, slog.Level) bool    { return true }
func (c *callbacks) WithAttrs([]slog.Attr) slog.Handler        { return c }
func (c *callbacks) WithGroup(string) slog.Handler             { return c }

// setDefaultLogger makes a handler that of slog.Default until the test ends. slog.SetDefault also
// redirects the output of package log, to which the usual handler of slog writes.
func setDefaultLogger(t *testing.T, h slog.Handler) {
	old, writer, flags := slog.Default(), log.Writer(), log.Flags()
	slog.SetDefault(slog.New(h))
	t.Cleanup(func() {
		slog.SetDefault(old)
		log.SetOutput(writer)
		log.SetFlags(flags)
	})
}

// limitWith returns a limit with all callbacks, and a function that calls all of its methods.
func limitWith(c *callbacks) (*weirhttp.Limit, func()) {
	key := func(*http.Request) string { c.by("By"); return "key" }
	route := weirhttp.ByRoute(nil)
	config := weirhttp.LimitConfig{
		Policies: []weirhttp.Policy{
			{Name: "bucket", Rate: limiter.PerSecond(1), Burst: 2, By: key, When: func(*http.Request) bool { c.by("When"); return true }, MaxKeys: 1},
			{Name: "window", Limit: 2, Window: time.Second, By: weirhttp.Combine(key, route), MaxKeys: 1},
			{Name: "remote", By: key, Remote: func(string) limiter.Remote { return c }},
		},
		Cost:      func(*http.Request) int { c.by("Cost"); return 1 },
		OnRefusal: c.onRefusal, Answer: c.answer,
	}
	l := weirhttp.NewLimit(config)
	return l, func() {
		if err := l.Reconfigure(config); err != nil {
			panic(err)
		}
		h := l.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			c.by("handler")
			l.Charge(r, 1)
		}))
		for range 4 {
			request{}.send(h)
		}
		l.Observe(func(*stat.Series, float64) bool { c.by("yield"); return true })
		l.Busiest(3)
	}
}

// transportWith returns a function that calls all methods of a Transport with all callbacks.
func transportWith(t *testing.T, c *callbacks) func() {
	gate := weir.New("gate", weir.Config{Rate: limiter.PerSecond(1), Burst: 1})
	transport := weirhttp.NewTransport(func(*http.Request) *weir.Gate { c.by("gate"); return gate }, weirhttp.TransportConfig{
		Base:      baseFunc(func(*http.Request) (*http.Response, error) { c.by("Base"); return newResponse(200), nil }),
		Classify:  func(*http.Response, error) breaker.Outcome { c.by("Classify"); return breaker.Success },
		OnRefusal: func(*http.Request, *weirhttp.RefusedError) { c.by("OnRefusal") },
		Fallback:  func(*http.Request, error) (*http.Response, error) { c.by("Fallback"); return newResponse(200), nil },
	})
	return func() {
		for range 2 {
			resp, err := transport.RoundTrip(newGet(t, "http://host/"))
			if err == nil {
				resp.Body.Close()
			}
		}
		transport.CloseIdleConnections()
	}
}

// handlersWith returns a function that sends requests through a Guard, a Shed and a full Shed with
// all callbacks, and calls the methods of their gate and limiters.
func handlersWith(c *callbacks) func() {
	config := weir.Config{Rate: limiter.PerSecond(1), Burst: 1}
	gate := weir.New("gate", config)
	flight := inflight.New(inflight.Config{Limit: 1, Queue: inflight.Queue{Target: time.Second}})
	full := inflight.New(inflight.Config{Limit: 1})
	_, _ = full.TryAcquire(context.Background())
	guard := weirhttp.Guard(func(*http.Request) *weir.Gate { c.by("gate"); return gate }, weirhttp.GuardConfig{
		Classify:  func(*http.Request, int) breaker.Outcome { c.by("Classify"); return breaker.Success },
		OnRefusal: c.onRefusal, Answer: c.answer,
	})(okHandler)
	shed := weirhttp.Shed(flight, weirhttp.ShedConfig{
		Caller:    func(*http.Request) (caller inflight.Caller) { c.by("Caller"); return },
		OnRefusal: c.onRefusal, Answer: c.answer,
	})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { c.by("handler") }))
	fullShed := weirhttp.Shed(full, weirhttp.ShedConfig{
		OnRefusal: func(*http.Request, weirhttp.Refusal) { c.by("OnRefusal of a Shed") },
		Answer:    func(http.ResponseWriter, *http.Request, weirhttp.Refusal) { c.by("Answer of a Shed") },
	})(okHandler)
	return func() {
		for range 2 {
			request{}.send(guard)
			request{}.send(shed)
			request{}.send(fullShed)
		}
		useGate(gate, config)
		for _, l := range []*inflight.Limiter{flight, full} {
			_ = l.Reconfigure(inflight.Config{Limit: 1, Queue: l.Queue()})
			_, _ = l.InFlight(), l.Stats()
			l.Observe(func(*stat.Series, float64) bool { return true })
		}
	}
}

// useGate calls the methods of a gate that change or read it, which no middleware calls.
func useGate(g *weir.Gate, c weir.Config) {
	_ = g.Reconfigure(c)
	g.Hold(time.Millisecond)
	g.Breaker().Reset()
	_, _, _, _, _ = g.Stats(), g.Tripped(), g.Explain(), g.Totals(), g.Limiter()
	g.Observe(func(*stat.Series, float64) bool { return true })
	g.Histograms(func(*stat.Series, stat.Histogram) bool { return true })
}

// newCallbacks returns callbacks of each object of the package, by name.
func newCallbacks(t *testing.T) map[string]*callbacks {
	all := map[string]*callbacks{}
	for _, name := range []string{"limit", "transport", "handlers"} {
		all[name] = &callbacks{called: map[string]int{}}
	}
	_, all["limit"].use = limitWith(all["limit"])
	all["transport"].use = transportWith(t, all["transport"])
	all["handlers"].use = handlersWith(all["handlers"])
	return all
}

// A lock that is held during a callback would block it for ever.
func TestCallbacksMayUseTheObjectThatCallsThem(t *testing.T) {
	for name, want := range map[string][]string{
		"limit":     {"By", "When", "Cost", "Remote", "OnRefusal", "Answer", "handler", "yield", "slog.Handler"},
		"transport": {"gate", "Base", "Classify", "OnRefusal", "Fallback"},
		"handlers":  {"gate", "Classify", "OnRefusal", "Answer", "Caller", "handler", "OnRefusal of a Shed", "Answer of a Shed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCallbacks(t)[name]
				setDefaultLogger(t, c)
				c.use()
				for _, callback := range want {
					require.Positive(t, c.called[callback], callback)
				}
			})
		})
	}
}

// While a callback takes an hour, requests whose callbacks are quick are answered at once.
func TestASlowCallbackDelaysNoOtherRequest(t *testing.T) {
	for _, name := range []string{"limit", "transport"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCallbacks(t)[name]
				setDefaultLogger(t, c)
				c.slow.Store(true)
				var all sync.WaitGroup
				for range 8 {
					all.Go(c.use)
					synctest.Wait()
				}
				for range 20 { // the slow callbacks come one after the other
					began := time.Now()
					c.slow.Store(false)
					c.use()
					require.Equal(t, began, time.Now())
					c.slow.Store(true)
					time.Sleep(time.Hour)
					synctest.Wait()
				}
				all.Wait()
			})
		})
	}
}

// While one callback of a Guard or a Shed takes an hour, other requests are answered at once. A
// slow handler would occupy the slot of the Shed.
func TestASlowCallbackOfAHandlerDelaysNoOtherRequest(t *testing.T) {
	for _, slow := range []string{"gate", "Classify", "OnRefusal", "Answer", "Caller", "OnRefusal of a Shed", "Answer of a Shed"} {
		t.Run(slow, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCallbacks(t)["handlers"]
				c.inside.Store(true) // its callbacks use nothing
				c.only = slow
				c.slow.Store(true)
				var all sync.WaitGroup
				for range 4 {
					all.Go(c.use)
					synctest.Wait()
				}
				require.Positive(t, c.called[slow])
				began := time.Now()
				c.slow.Store(false)
				c.use()
				require.Equal(t, began, time.Now())
				all.Wait()
				require.NotEqual(t, began, time.Now(), "no callback was slow")
			})
		})
	}
}

// The first request without a route logs, whatever the logger does.
func TestASlowLoggerDelaysNoOtherRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &callbacks{called: map[string]int{}}
		c.slow.Store(true)
		setDefaultLogger(t, c)
		by := weirhttp.ByRoute(nil)
		req := newGet(t, "http://host/")
		go by(req)
		synctest.Wait()
		began := time.Now()
		require.Empty(t, by(newGet(t, "http://host/")))
		require.Equal(t, began, time.Now())
		require.Equal(t, 1, c.called["slog.Handler"])
		time.Sleep(2 * time.Hour)
	})
}
