package alert_test

import (
	"context"
	"log/slog"
	"sync"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// totals is a source whose counts a test sets.
type totals window.Totals

func (c *totals) Totals() window.Totals { return window.Totals(*c) }

var refusedCalls = (&stat.Instrument{
	Name: "weir.window.events", Unit: "{event}", Kind: stat.Counter, Attrs: []string{"weir.window.name", "weir.window.outcome"},
}).Series("test", "refused")

func (c *totals) Observe(yield func(*stat.Series, float64) bool) {
	yield(refusedCalls, float64(c.Refused))
}

// alertRecorder keeps the alerts that a notifier received.
type alertRecorder struct {
	mu   sync.Mutex
	told []alert.Alert
}

func (d *alertRecorder) notifier(name string) alert.Notifier {
	return alert.Func(name, func(_ context.Context, a alert.Alert) error {
		d.write(a)
		return nil
	})
}

func (d *alertRecorder) write(a ...alert.Alert) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = append(d.told, a...)
}

func (d *alertRecorder) alerts() []alert.Alert {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]alert.Alert(nil), d.told...)
}

func (d *alertRecorder) lines() (lines []string) {
	for _, a := range d.alerts() {
		lines = append(lines, a.Rule+" "+string(a.State))
	}
	return lines
}

// discardLogger returns a logger that discards everything.
func discardLogger() *slog.Logger { return slog.New(slog.DiscardHandler) }

// metricsOf returns the current metrics of the source, by instrument and attribute values.
func metricsOf(source stat.Source) map[string]float64 {
	shown := map[string]float64{}
	for s, value := range source.Observe {
		key := s.Instrument.Name
		for _, v := range s.Values {
			key += "|" + v
		}
		shown[key] = value
	}
	return shown
}
