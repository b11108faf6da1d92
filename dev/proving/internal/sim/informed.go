package sim

import (
	"context"
	"errors"
	"time"
)

// Informed returns a guard that sees how many calls the service is serving and how many wait, as
// one gate in front of it could count them for all processes. It lets a call through as long as
// fewer calls wait than there are servers, so servers are hardly ever idle and waits are short.
// Unlike [Oracle] it does not know how long a call takes. If times are exponential, no guard
// without that knowledge gets more answers in the long run: busy servers end as many calls per
// second whatever the calls are.
func Informed() Maker {
	return Maker{
		Name:   "informed",
		Config: "sees how many calls are served and wait, and not how long each takes",
		New:    func(s Setting) Guard { return &informed{s.run} },
	}
}

type informed struct{ run *run }

var errEnoughWait = errors.New("sim: enough calls wait for a server")

func (g *informed) Call(ctx context.Context, f func(context.Context) error) error {
	if a := ctx.(*deadline).attempt; !g.mayEnter(a) {
		return errEnoughWait
	}
	return f(ctx)
}

func (g *informed) Refusal(err error) (time.Duration, bool) { return 0, errors.Is(err, errEnoughWait) }

func (g *informed) Openings() int { return 0 }

func (g *informed) mayEnter(a *attempt) bool {
	g.run.mu.Lock()
	defer g.run.mu.Unlock()
	h := g.run.service.hosts[a.host]
	return !h.down && !h.hung && (h.mayStart() || len(h.queue) < min(h.servers, g.run.service.Queue))
}
