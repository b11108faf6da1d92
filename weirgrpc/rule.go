package weirgrpc

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// Rule decides which calls a [Server] serves. [Limit], [LimitBy], [LimitRemote], [Shed] and [Guard]
// return rules. The zero value is not usable.
type Rule struct {
	// admit returns what the call holds until it ends, or nil if it holds nothing. An error refuses the
	// call.
	admit func(ctx context.Context, call Call) (pass, error)
}

// pass is what a call holds of a rule that has admitted it.
type pass interface {
	record(o breaker.Outcome) // the outcome of the call, at most once
	end()                     // the handler has returned
	undo()                    // the call was not served; called instead of record and end
}

// Guard has calls go through the gates, so that handlers which fail are left alone for a
// while. A deadline of the client's that passes is a failure: where clients set short ones
// at will, give a ServerConfig.Classify that ignores it. It panics if gate is nil.
func Guard(gate func(context.Context, Call) *weir.Gate) Rule {
	if gate == nil {
		panic(errors.New("weirgrpc: Guard needs a gate function"))
	}
	return Rule{func(ctx context.Context, call Call) (pass, error) {
		g := gate(ctx, call)
		if g == nil {
			return nil, nil
		}
		p := &gatePass{gate: g, ctx: ctx}
		var err error
		if p.permit, err = g.Allow(ctx); err != nil {
			return nil, err
		}
		return p, nil
	}}
}

type gatePass struct {
	gate   *weir.Gate
	ctx    context.Context // of the call
	permit breaker.Permit
}

func (p *gatePass) record(o breaker.Outcome) { p.permit.Record(o) }

// end counts only where the handler has not returned.
func (p *gatePass) end() { p.permit.Record(breaker.Failure) }

func (p *gatePass) undo() {
	p.permit.Record(breaker.Ignored)
	p.gate.Refund(p.ctx)
}

// Limit is one limit for all calls together. It panics if there is no limiter.
func Limit(l *limiter.Named) Rule {
	if l == nil {
		panic("weirgrpc: Limit needs a limiter")
	}
	return Rule{func(context.Context, Call) (pass, error) {
		return admitted(l.Name(), l.Take(1), func() { l.Refund(1) })
	}}
}

// LimitBy is a limit for each key of calls, such as [ByPeer], [ByMethod] or one of yours. If the group
// is full of keys in use, its Overflow decides about new keys: with limiter.RefuseNew, a flood of keys
// refuses all new ones. Several periods, such as a second and a day, are several rules. LimitBy panics
// if group or key is nil.
func LimitBy[K comparable](g *limiter.Group[K], key func(ctx context.Context, call Call) K) Rule {
	if g == nil || key == nil {
		panic("weirgrpc: LimitBy needs a group and a key")
	}
	return Rule{func(ctx context.Context, call Call) (pass, error) {
		k := key(ctx, call)
		l := g.Get(k)
		return admitted(g.Name(), l.Take(1), func() { l.Refund(1) })
	}}
}

// LimitRemote is a limit for each key of calls that is kept outside this process, such as one of package
// fleet. The name stands in errors. What a call took is given back if a later rule refuses it and the
// limit has a method Refund. An error of the limit is no decision: the call gets the status Unavailable,
// and is not refused. LimitRemote panics if limit or key is nil.
func LimitRemote(name string, limit func(key string) limiter.Remote, key func(ctx context.Context, call Call) string) Rule {
	if limit == nil || key == nil {
		panic(errors.New("weirgrpc: LimitRemote needs a limit and a key"))
	}
	return Rule{func(ctx context.Context, call Call) (pass, error) {
		remote := limit(key(ctx, call))
		r, err := remote.Take(ctx, 1)
		if err != nil {
			return nil, &undecidedError{err}
		}
		return admitted(name, r, func() { refundRemote(ctx, remote) })
	}}
}

// refundRemote gives a token back, if the limit can take it. The call may have been cancelled meanwhile.
func refundRemote(ctx context.Context, limit limiter.Remote) {
	if l, ok := limit.(interface {
		Refund(ctx context.Context, n int) error
	}); ok {
		_ = l.Refund(context.WithoutCancel(ctx), 1) // a token that is lost errs on the strict side
	}
}

// admitted is what a limiter's answer to a call means.
func admitted(name string, r limiter.Result, refund func()) (pass, error) {
	switch {
	case !r.OK:
		e := &limiter.LimitedError{Name: name, Reason: limiter.NoPermits, Limit: r.Limit}
		if r.RetryAfter != limiter.Never {
			e.Until = time.Now().Add(r.RetryAfter)
		}
		return nil, e
	case r.RetryAfter > 0: // the shadow of a refusal, which has taken nothing
		return nil, nil
	}
	return tokenPass(refund), nil
}

// tokenPass gives a token back to its limiter. One that was used is gone.
type tokenPass func()

func (tokenPass) record(breaker.Outcome) {}
func (tokenPass) end()                   {}
func (p tokenPass) undo()                { p() }
