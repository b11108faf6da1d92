package notify

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/view"
)

// receiver is the part that all notifiers share: a name, a repeat interval and the breaker of the
// server. A notifier is a source of metrics and has a view, which are those of its breaker.
type receiver struct {
	source
	name    string
	repeat  time.Duration
	breaker *breaker.Breaker
}

type source interface {
	stat.HistogramSource
	view.Viewer
}

// newReceiver returns a receiver. repeat is Config.Repeat or its default.
func newReceiver(name string, repeat time.Duration, c breaker.Config) receiver {
	b := breaker.New(name, breakerConfig(c))
	return receiver{source: b, name: name, repeat: max(repeat, 0), breaker: b}
}

// Name returns Config.Name or its default.
func (r receiver) Name() string { return r.name }

// Repeat returns how often firing alerts are sent again, or 0 for never.
func (r receiver) Repeat() time.Duration { return r.repeat }

// Format prints only the name, for every verb.
func (r receiver) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "notifier %q", r.name) }
