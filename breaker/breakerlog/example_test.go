package breakerlog_test

import (
	"log/slog"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/breaker/breakerlog"
)

func TestChangesNeedsALogger(t *testing.T) {
	require.PanicsWithValue(t, "breakerlog: Changes: the logger is nil", func() { breakerlog.Changes(nil) })
}

func Example() {
	// A service passes slog.Default(). This logger leaves out the attributes that differ from run
	// to run.
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey, "weir.breaker.changed_at", "weir.breaker.seq", "weir.breaker.origin":
			return slog.Attr{}
		}
		return a
	}}))
	payments := breaker.New("payments", breaker.Config{OnChange: breakerlog.Changes(logger)})
	payments.Force(breaker.ForcedOpen, "")
	// Output:
	// level=WARN msg="breaker forced_open" event.name=weir.breaker.transition weir.breaker.name=payments weir.breaker.state=forced_open weir.breaker.previous_state=closed weir.breaker.reason=forced
}
