package sim

import (
	"context"
	"errors"
	"time"
)

// None returns the guard that lets everything through.
func None() Maker {
	return Maker{
		Name:   "none",
		Config: "lets every call through",
		New:    func(Setting) Guard { return none{} },
	}
}

type none struct{}

func (none) Call(ctx context.Context, f func(context.Context) error) error { return f(ctx) }

func (none) Begin(context.Context) (done func(error), err error) { return func(error) {}, nil }

func (none) Refusal(error) (time.Duration, bool) { return 0, false }

func (none) Openings() int { return 0 }

// Oracle returns a guard that looks into the service: it lets a call through if the service will
// answer it within its deadline, as far as that follows from its present state. It knows how long
// each call takes, and what waits in front of it. It does not know which calls will fail, and no
// coming fault. It shows what is possible, and no guard of a client can do what it does.
func Oracle() Maker {
	return Maker{
		Name:   "oracle",
		Config: "sees the service, and lets through what it will answer in time",
		New:    func(s Setting) Guard { return &oracle{s.run} },
	}
}

type oracle struct{ run *run }

var errHopeless = errors.New("sim: the service will not answer in time")

func (o *oracle) Call(ctx context.Context, f func(context.Context) error) error {
	if a := ctx.(*deadline).attempt; !o.inTime(a) {
		return errHopeless
	}
	return f(ctx)
}

func (o *oracle) Refusal(err error) (time.Duration, bool) { return 0, errors.Is(err, errHopeless) }

func (o *oracle) Openings() int { return 0 }

// inTime reports whether the service would answer an attempt within its deadline.
func (o *oracle) inTime(a *attempt) bool {
	o.run.mu.Lock()
	defer o.run.mu.Unlock()
	s := o.run.service
	h := s.hosts[a.host]
	if h.down || h.hung || !h.mayStart() && !s.hasRoom(h) {
		return false
	}
	works, _ := s.timeOf(h, a)
	return s.startOf(h)+works <= a.ctx.at
}
