package admin_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/admin"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// callingSource calls a function in each of its methods.
type callingSource struct {
	in func(method string)
	b  *breaker.Breaker
}

func (s *callingSource) Name() string {
	s.in("Name")
	return "calling"
}
func (s *callingSource) Observe(func(*stat.Series, float64) bool) {}
func (s *callingSource) Hold(time.Duration)                       { s.in("Hold") }

func (s *callingSource) Reset(context.Context, string) error {
	s.in("Reset")
	return nil
}

func (s *callingSource) Busiest(int) []limiter.BusyKey {
	s.in("Busiest")
	return nil
}

func (s *callingSource) Breakers() iter.Seq2[string, *breaker.Breaker] {
	return func(yield func(string, *breaker.Breaker) bool) {
		s.in("Breakers")
		yield("k", s.b)
	}
}

// callingHandler is the handler of a logger.
type callingHandler struct{ in func(method string) }

func (callingHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h callingHandler) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h callingHandler) WithGroup(string) slog.Handler          { return h }
func (h callingHandler) Handle(context.Context, slog.Record) error {
	h.in("Logger")
	return nil
}

// Each function of the program that the handler calls may call all methods of the handler, and
// delays no request for another object while it is slow.
func TestCallbacksMayCallTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, other := &handlerTest{T: t}, breaker.New("other", breaker.Config{})
		active, nested, users := "", false, 0
		seen := map[string]int{}
		in := func(method string) {
			if method != active || nested {
				return
			}
			nested = true
			defer func() { nested = false }()
			seen[method]++
			for _, path := range []string{"/objects", "/object?name=calling", "/members?name=calling"} {
				require.NotEqual(t, 429, k.send(http.MethodGet, path, "").Status, method)
			}
			status := k.send(http.MethodPost, "/force?name=calling&all=true", `{"state":"open"}`).Status
			require.Contains(t, []int{200, 404, 409}, status, "%s: an action is in progress, or the source is being added", method)
			require.Equal(t, 200, k.send(http.MethodPost, "/force?name=other", `{"state":"open"}`).Status, method)
			more := breaker.New("more", breaker.Config{})
			require.NoError(t, k.handler.Add(more))
			k.handler.Remove(more)
		}
		source := &callingSource{in, breaker.New("b", breaker.Config{OnChange: func(breaker.Change) { in("OnChange") }})}
		var err error
		k.handler, err = admin.New(admin.Config{Logger: slog.New(callingHandler{in}), Authorize: func(*http.Request, admin.Action) (string, error) {
			in("Authorize")
			users++ // each has a rate of its own
			return fmt.Sprint("user-", users%900), nil
		}}, source, other)
		require.NoError(t, err)
		for _, active = range []string{"Name", "Hold", "Reset", "Busiest", "Breakers", "OnChange", "Logger", "Authorize"} {
			k.sendAction("force", "name=calling&all=true", `{"state":"open","for":"1s"}`)
			k.sendAction("force", "name=calling&key=k", `{"state":"closed","for":"1s"}`)
			k.send(http.MethodPost, "/reset?name=calling&key=a", "")
			k.sendAction("hold", "name=calling&all=true", `{"for":"1s"}`)
			k.send(http.MethodGet, "/object?name=calling", "")
			k.handler.Remove(source)
			require.NoError(t, k.handler.Add(source))
			time.Sleep(time.Second)
			synctest.Wait()
			require.Positive(t, seen[active], active)
		}
	})
}

// A limit that bites is named in the answer and in the log. Requests that find no slot are logged
// once per minute.
func TestBoundsAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := make(chan struct{})
		k := &handlerTest{T: t, logs: new(logs)}
		h, err := admin.New(admin.Config{Logger: slog.New(slog.NewTextHandler(k.logs, nil)), Authorize: func(r *http.Request, _ admin.Action) (string, error) {
			if r.Header.Get("Wait") != "" {
				<-wait
			}
			return r.Header.Get("User"), nil
		}})
		require.NoError(t, err)
		k.handler = h
		for range 32 {
			go k.send(http.MethodGet, "/objects", "", withHeader("Wait", "1"), withHeader("User", "slow"))
		}
		synctest.Wait()
		const busy = "32 requests are being served, which is the most"
		for minute := 1; minute <= 2; minute++ {
			for range 3 {
				a := k.send(http.MethodGet, "/objects", "", withHeader("User", "alice"))
				require.Equal(t, 503, a.Status)
				require.Equal(t, busy, a.Error)
				require.Equal(t, "1", a.Header.Get("Retry-After"))
				time.Sleep(20 * time.Second)
			}
			require.Equal(t, minute, strings.Count(k.logs.text(), "status=503"))
			require.Equal(t, minute, strings.Count(k.logs.text(), busy))
		}
		close(wait)
		synctest.Wait()

		time.Sleep(time.Hour)
		var last answer
		for i := range 1100 {
			last = k.send(http.MethodGet, "/objects", "", withHeader("User", fmt.Sprint("user-", i)))
		}
		require.Equal(t, 429, last.Status)
		require.Equal(t, `"user-1099", or all users beyond 1000 together, send more than 10 requests per second`, last.Error)
		require.Contains(t, k.logs.text(), "or all users beyond 1000 together")
	})
}

// A silence without a name gets its conditions as a name, and replaces no other silence that begins
// with the same conditions.
func TestASilenceWithLongConditionsNeedsAName(t *testing.T) {
	m := alert.NewMonitor(alert.Config{Instance: "web-1", Logger: slog.New(slog.DiscardHandler)})
	k := newHandlerTest(t, m)
	long := `{"match":["alertname=` + strings.Repeat("x", 250) + `"],"for":"1h"%s}`
	k.requireRefused(400, "Name must be UTF-8 and take 1 to 200 bytes", "/silence?name=web-1", fmt.Sprintf(long, ""))
	k.sendAction("silence", "name=web-1", fmt.Sprintf(long, `,"silence":"x"`))
}
