// Package remote takes tokens from a limiter.Remote so that they can be given back. It does not
// import package limiter, so R stands for limiter.Result.
package remote

import (
	"context"
)

// Tokens are the tokens that a Remote has granted. The zero value is none.
type Tokens struct {
	granted bool
	n       int
	refund  func(ctx context.Context, n int) error // nil if they cannot be given back
	remote  any                                    // that granted them
}

// charger is a Remote that can be charged for more, as limiter.Remote says.
type charger interface {
	Charge(ctx context.Context, n int) error
}

// Granted reports whether the Remote has granted tokens.
func (t *Tokens) Granted() bool { return t.granted }

// Refund gives the tokens back if the Remote can take them, even if ctx has ended. After that, t is
// zero.
func (t *Tokens) Refund(ctx context.Context) {
	given := *t
	*t = Tokens{}
	if given.refund != nil {
		// an error only means that the tokens are lost
		_ = given.refund(context.WithoutCancel(ctx), given.n)
	}
}

// Settle charges the Remote for n tokens instead of those that it has granted, even if ctx has
// ended: it gives the others back, or charges more, if the Remote can do that. A negative n counts
// as 0. After that, t is zero. An error means that the Remote did not answer: tokens are then not
// given back, and it is not known whether more were charged.
func (t *Tokens) Settle(ctx context.Context, n int) error {
	given := *t
	*t = Tokens{}
	ctx, n = context.WithoutCancel(ctx), max(n, 0)
	switch {
	case !given.granted:
	case n < given.n && given.refund != nil:
		return given.refund(ctx, given.n-n)
	case n > given.n:
		_, err := Charge(ctx, given.remote, n-given.n)
		return err
	}
	return nil
}

// Charge takes n tokens of a Remote, whether there are as many or not. It reports whether the
// Remote can do that.
func Charge(ctx context.Context, r any, n int) (can bool, err error) {
	c, can := r.(charger)
	if can {
		err = c.Charge(ctx, n)
	}
	return can, err
}

// Take is r.Take. If the result is a refusal, or one that shadow mode has allowed, its tokens were
// not granted, and the caller must not keep t.
func Take[R any](ctx context.Context, r interface {
	Take(ctx context.Context, n int) (R, error)
}, n int,
) (result R, t Tokens, err error) {
	if reserver, ok := r.(interface {
		Reserve(ctx context.Context, n int) (R, func(ctx context.Context, n int) error, error)
	}); ok {
		result, t.refund, err = reserver.Reserve(ctx, n)
	} else {
		result, err = r.Take(ctx, n)
	}
	if err != nil {
		return result, Tokens{}, err
	}
	t.granted, t.n, t.remote = true, n, r
	return result, t, nil
}

// Wait is Wait of a Remote that has this method, as limiter.WaitLimiter says.
func Wait(ctx context.Context, r any, n int) (t Tokens, err error) {
	if reserver, ok := r.(interface {
		WaitReserve(ctx context.Context, n int) (func(ctx context.Context, n int) error, error)
	}); ok {
		t.refund, err = reserver.WaitReserve(ctx, n)
	} else {
		err = r.(interface {
			Wait(ctx context.Context, n int) error
		}).Wait(ctx, n)
	}
	if err != nil {
		return Tokens{}, err
	}
	t.granted, t.n, t.remote = true, n, r
	return t, nil
}
