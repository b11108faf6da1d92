package main

import (
	"context"
	"slices"
	"sync"
	"time"

	_ "embed"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/weirconfig"
)

//go:embed weir.yaml
var configText []byte

// guard is all that the shop with weir has and the other one has not: the gate and the alert of
// weir.yaml.
type guard struct {
	*weirconfig.Set

	mu     sync.Mutex
	opened int         // how often the breaker has opened
	alerts []time.Time // when the person on call was alerted
}

func newGuard() (*guard, error) {
	file, err := weirconfig.Parse("weir.yaml", configText)
	if err != nil {
		return nil, err
	}
	g := &guard{}
	g.Set, err = weirconfig.New(file, weirconfig.Config{
		Gate:   func(_ string, c *weir.Config) { c.Breaker.OnChange = g.changed },
		Notify: []alert.Notifier{alert.Func("on call", g.alert)},
	})
	return g, err
}

// run makes a call if the gate allows it.
func (g *guard) run(ctx context.Context, call func(context.Context) error) error {
	return g.Gate("payments").Run(ctx, call)
}

func (g *guard) changed(c breaker.Change) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.From == breaker.Closed && c.To == breaker.Open { // a failed probe is not another opening
		g.opened++
	}
}

// alert takes the place of a pager. Package notify has real receivers.
func (g *guard) alert(_ context.Context, a alert.Alert) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a.State == alert.Firing {
		g.alerts = append(g.alerts, time.Now())
	}
	return nil
}

// read returns how often the breaker has opened, and when the person on call was alerted.
func (g *guard) read() (opened int, alerts []time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened, slices.Clone(g.alerts)
}
