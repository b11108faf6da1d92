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

// waiting is a Remote that can wait.
type waiting interface {
	limiter.Remote
	limiter.WaitLimiter
}

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
			for limit, r := range map[int]waiting{7: plain{err}, 8: reserving{plain{err}, &back}} {
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

// charged takes tokens back and can be charged for more.
type charged struct{ reserving }

func (c charged) Charge(ctx context.Context, n int) error {
	*c.back -= n
	return errors.Join(ctx.Err(), c.err)
}

func TestTokensAreSettledByTheirRemote(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for used, want := range map[int]int{5: 0, 3: 2, 0: 5, -1: 5, 9: -4} {
		for name, c := range map[string]struct {
			remote func(back *int) waiting
			want   int
		}{
			"charged": {func(back *int) waiting {
				return charged{reserving{back: back}}
			}, want},
			"reserving": {func(back *int) waiting {
				return reserving{back: back}
			}, max(want, 0)},
			"plain": {func(*int) waiting {
				return plain{}
			}, 0},
		} {
			back := 0
			_, taken, err := remote.Take[limiter.Result](t.Context(), c.remote(&back), 5)
			require.NoError(t, err)
			waited, err := remote.Wait(t.Context(), c.remote(&back), 5)
			require.NoError(t, err)
			for range 2 { // the second has no effect
				require.NoError(t, taken.Settle(gone, used))
				require.NoError(t, waited.Settle(gone, used))
				taken.Refund(gone)
			}
			require.Equal(t, 2*c.want, back, "%s: %d", name, used)
		}
	}
	var none remote.Tokens
	require.NoError(t, none.Settle(gone, 5))
}

func TestChargeARemote(t *testing.T) {
	back := 0
	can, err := remote.Charge(t.Context(), charged{reserving{plain{errAway}, &back}}, 4)
	require.True(t, can)
	require.ErrorIs(t, err, errAway)
	require.Equal(t, -4, back)
	can, err = remote.Charge(t.Context(), plain{}, 4)
	require.False(t, can)
	require.NoError(t, err)
}
