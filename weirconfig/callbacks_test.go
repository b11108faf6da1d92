package weirconfig_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/weirconfig"
	"github.com/weir-go/weir/weirhttp"
)

// callingHandler is the handler of a logger that calls a function for each record.
type callingHandler struct{ call func() }

func (callingHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h callingHandler) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h callingHandler) WithGroup(string) slog.Handler          { return h }
func (h callingHandler) Handle(context.Context, slog.Record) error {
	h.call()
	return nil
}

// The functions of the program that a set calls may call all its methods except Update, and delay
// no call of a method while they are slow.
func TestCallbacksMayCallTheSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *watchedSet
		seen := map[string]int{}
		call := func(from string) func() {
			return func() {
				if w == nil || w.Set == nil {
					return
				}
				seen[from]++
				w.Gate("a")
				w.Group("g")
				w.Limit("l")
				w.Monitor()
				_ = w.Notice()
				_ = fmt.Sprint(w.Set)
				for range w.Observe {
					for range w.Observe {
						require.NotEmpty(t, w.Sources())
					}
				}
				other := make(chan int)
				go func() { other <- len(w.Sources()) }() // while this one is slow
				require.NotZero(t, <-other)
			}
		}
		config := weirconfig.Config{
			Gate: func(_ string, c *weir.Config) {
				call("Gate")()
				c.Breaker.OnChange = func(breaker.Change) { call("OnChange")() }
			},
			Limit:  func(string, *weirhttp.LimitConfig) { call("Limit")() },
			Logger: slog.New(callingHandler{call("Logger")}),
		}
		w = watchFileWith(t, "gates: {a: {}}\ngroups: {g: {}}\nlimits: {l: {}}\n", config)
		w.write(t, "gates: {a: {breaker: {force: forced_open}}}\ngroups: {g: {}}\nlimits: {l: {}}\n")
		time.Sleep(4*time.Second + 1)
		w.write(t, "gates: {a: {breaker: {force: }}")
		time.Sleep(4 * time.Second)
		require.NotEmpty(t, w.Notice())
		for _, from := range []string{"Gate", "OnChange", "Limit", "Logger"} {
			require.Positive(t, seen[from], from)
		}
	})
}

// An update that a callback of Update starts comes after it.
func TestACallbackMayStartAnUpdateOnAGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var set *weirconfig.Set
		updated := make(chan error)
		next, err := weirconfig.Parse("w.yaml", []byte("gates: {c: {}}\n"))
		require.NoError(t, err)
		set = newSet(t, "gates: {a: {}}\n", weirconfig.Config{Gate: func(name string, _ *weir.Config) {
			if name == "b" {
				go func() { updated <- set.Update(next) }()
			}
		}})
		require.NoError(t, update(t, set, "gates: {b: {}}\n"))
		require.NoError(t, <-updated)
		require.Equal(t, 10, allowedOfTen(t, set.Gate("c")))
		require.Zero(t, allowedOfTen(t, set.Gate("b")))
	})
}
