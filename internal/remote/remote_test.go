package remote_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/remote"
	"github.com/weir-go/weir/limiter"
)

var errAway = errors.New("away")

// plain can wait, and takes nothing back.
type plain struct{ err error }

func (p plain) Take(context.Context, int) (limiter.Result, error) {
	return limiter.Result{OK: true, Limit: 7}, p.err
}

func (p plain) Wait(context.Context, int) error { return p.err }

// reserving takes tokens back.
type reserving struct {
	plain
	back *int
}

func (r reserving) refund(ctx context.Context, n int) error {
	*r.back += n
	return ctx.Err()
}

func (r reserving) Reserve(context.Context, int) (limiter.Result, func(context.Context, int) error, error) {
	return limiter.Result{OK: true, Limit: 8}, r.refund, r.err
}

func (r reserving) WaitReserve(context.Context, int) (func(context.Context, int) error, error) {
	return r.refund, r.err
}

func TestTokensReturnToTheirRemote(t *testing.T) {
	for name, err := range map[string]error{"granted": nil, "undecided": errAway} {
		t.Run(name, func(t *testing.T) {
			back := 0
			for limit, r := range map[int]interface {
				limiter.Remote
				Wait(ctx context.Context, n int) error
			}{7: plain{err}, 8: reserving{plain{err}, &back}} {
				result, taken, gotErr := remote.Take[limiter.Result](t.Context(), r, 3)
				require.Equal(t, limit, result.Limit)
				waited, waitErr := remote.Wait(t.Context(), r, 4)
				require.Equal(t, []error{err, err}, []error{gotErr, waitErr})
				require.Equal(t, []bool{err == nil, err == nil}, []bool{taken.Granted(), waited.Granted()})
				gone, cancel := context.WithCancel(t.Context())
				cancel()
				for range 2 { // the second has no effect
					taken.Refund(gone)
					waited.Refund(gone)
				}
				require.False(t, taken.Granted() || waited.Granted())
			}
			if err == nil {
				require.Equal(t, 7, back)
			} else {
				require.Zero(t, back)
			}
		})
	}
}
