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
	// admit returns what the call holds until it ends, or nil if it holds nothing. An error refuses
	// the call.
	admit func(ctx context.Context, call Call) (pass, error)
}

// pass is held by a call that a rule has admitted, until the call ends.
type pass interface {
	record(o breaker.Outcome) // the outcome of the call, at most once
	end()                     // the handler has returned or panicked
	undo()                    // the call was not served; called instead of record and end
}

// Guard returns a rule that serves each call through the gate that the gate function returns, so
// that a handler that fails is not called for a while. If the function returns nil, the call is
// served without a gate. Guard panics if gate is nil.
//
// A deadline of the client that passes is a failure. If clients choose short deadlines, set a
// ServerConfig.Classify that ignores DeadlineExceeded.
func Guard(gate func(context.Context, Call) *weir.Gate) Rule {
	if gate == nil {
		panic(errors.New("weirgrpc: Guard needs a gate function"))
	}
	return Rule{func(ctx context.Context, call Call) (pass, error) {
		g := gate(ctx, call)
		if g == nil {
			return nil, nil
		}
		var p gatePass
		var err error
		if p.permit, p.refund, err = g.Reserve(ctx); err != nil {
			return nil, err
		}
		return &p, nil
	}}
}

type gatePass struct {
	permit weir.Permit
	refund func()
}

func (p *gatePass) record(o breaker.Outcome) { p.permit.Record(context.Background(), nil, o) }

// end counts only if the handler has panicked before an outcome was recorded.
func (p *gatePass) end() { p.permit.Record(context.Background(), nil, breaker.Failure) }

func (p *gatePass) undo() {
	p.permit.Record(context.Background(), nil, breaker.Ignored)
	p.refund()
}

// Limit returns a rule with one limit for all calls. The name appears in errors. The limiters of
// package limiter have a Name in their config. Limit panics if l is nil.
func Limit(l interface {
	limiter.Limiter
	Name() string
},
) Rule {
	if l == nil {
		panic(errors.New("weirgrpc: Limit needs a limiter"))
	}
	return Rule{func(context.Context, Call) (pass, error) {
		return admitReserved(l.Name(), limiter.Reserve(l, 1))
	}}
}

// LimitBy returns a rule with one limit per key, such as [ByPeer] or [ByMethod]. For limits over
// several periods, such as a second and a day, use several rules. If all keys of the group are in
// use and its ShareNew is not set, calls with new keys are refused. Their error has the Reason
// limiter.NoRoom and says what MaxKeys is. So a flood of keys refuses all new keys. LimitBy panics
// if g or key is nil.
func LimitBy[K comparable](g *limiter.Group[K], key func(ctx context.Context, call Call) K) Rule {
	if g == nil || key == nil {
		panic(errors.New("weirgrpc: LimitBy needs a group and a key function"))
	}
	return Rule{func(ctx context.Context, call Call) (pass, error) {
		p, err := admitReserved(g.Name(), limiter.Reserve(g.Get(key(ctx, call)), 1))
		return p, withMaxKeys(err, g)
	}}
}

// withMaxKeys makes the error of a call without room for its key say how many keys the limit keeps,
// if the limit tells.
func withMaxKeys(err error, limit any) error {
	limited, ok := errors.AsType[*limiter.LimitedError](err)
	if m, tells := limit.(interface{ MaxKeys() int }); ok && tells && limited.Reason == limiter.NoRoom {
		limited.MaxKeys = m.MaxKeys()
	}
	return err
}

// LimitRemote returns a rule with one limit per key that is kept outside this process, such as a
// limit of package fleet. The name appears in errors. If a later rule refuses a call, its token is
// given back if the limit has the method Reserve of limiter.Remote. If the limit returns an error,
// the call gets the status Unavailable and does not count as refused. LimitRemote panics if limit
// or key is nil.
func LimitRemote(name string, limit func(key string) limiter.Remote, key func(ctx context.Context, call Call) string) Rule {
	if limit == nil || key == nil {
		panic(errors.New("weirgrpc: LimitRemote needs a limit and a key function"))
	}
	return Rule{func(ctx context.Context, call Call) (pass, error) {
		remote := limit(key(ctx, call))
		r, refund, err := takeRemote(ctx, remote)
		if err != nil {
			return nil, &undecidedError{err}
		}
		p, err := admit(name, r, refund)
		return p, withMaxKeys(err, remote)
	}}
}

// takeRemote takes a token. refund gives it back if the limit can take it, even if the call was
// cancelled meanwhile.
func takeRemote(ctx context.Context, limit limiter.Remote) (r limiter.Result, refund func(), err error) {
	l, ok := limit.(interface {
		Reserve(ctx context.Context, n int) (limiter.Result, func(ctx context.Context, n int) error, error)
	})
	if !ok {
		r, err = limit.Take(ctx, 1)
		return r, func() {}, err
	}
	r, giveBack, err := l.Reserve(ctx, 1)
	return r, func() {
		if giveBack != nil {
			// an error only means that one token is lost
			_ = giveBack(context.WithoutCancel(ctx), 1)
		}
	}, err
}

func admitReserved(name string, r *limiter.Reservation) (pass, error) {
	return admit(name, r.Result, func() { r.Refund(1) })
}

// admit turns the result of a limiter into what the call holds, or into the error that refuses the
// call.
func admit(name string, r limiter.Result, refund func()) (pass, error) {
	switch {
	case !r.OK:
		e := &limiter.LimitedError{Name: name, Reason: limiter.NoTokens, Limit: r.Limit}
		if r.NoRoom {
			e.Reason = limiter.NoRoom
		}
		if r.RetryAfter != limiter.Never {
			e.Until = time.Now().Add(r.RetryAfter)
		}
		return nil, e
	case r.RetryAfter > 0: // refused in shadow mode, so no token was taken
		return nil, nil
	}
	return tokenPass(refund), nil
}

// tokenPass gives a token back if the call is not served.
type tokenPass func()

func (tokenPass) record(breaker.Outcome) {}
func (tokenPass) end()                   {}
func (p tokenPass) undo()                { p() }
