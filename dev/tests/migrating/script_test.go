package migrating

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var errDown = errors.New("connection refused")

// step makes a number of calls with the same result, some time after the previous step.
type step struct {
	wait  time.Duration
	calls int
	err   error // the answer of the service; nil means a user
}

// comparedProgram is one of the two compared programs. asked counts the calls that reach the
// service.
type comparedProgram struct {
	get   func(ctx context.Context, get fetch, id int) (*User, error)
	asked int
}

func (s *comparedProgram) call(ctx context.Context, answer error) (*User, error) {
	return s.get(ctx, func(_ context.Context, id int) (*User, error) {
		s.asked++
		if answer != nil {
			return nil, answer
		}
		return &User{id}, nil
	}, 7)
}

// compareInBubble creates both sides in a synctest bubble and compares them.
func compareInBubble(t *testing.T, peer, own func() *comparedProgram, script []step) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { compare(t, peer(), own(), script) })
}

// compare makes the same calls through both sides. It requires the same results and the same number
// of calls to the service.
func compare(t *testing.T, peer, own *comparedProgram, script []step) {
	t.Helper()
	for n, s := range script {
		time.Sleep(s.wait)
		for i := range s.calls {
			user, err := peer.call(t.Context(), s.err)
			got, gotErr := own.call(t.Context(), s.err)
			require.Equalf(t, err, gotErr, "step %d, call %d", n, i)
			require.Equalf(t, user, got, "step %d, call %d", n, i)
			require.Equalf(t, peer.asked, own.asked, "step %d, call %d: asked", n, i)
		}
	}
}

// countRefusals makes calls and returns how many were refused.
func countRefusals(t *testing.T, s *comparedProgram, calls int, answer error) (n int) {
	t.Helper()
	for range calls {
		if _, err := s.call(t.Context(), answer); errors.Is(err, ErrUnavailable) {
			n++
		}
	}
	return n
}

// outageScript begins after good calls, continues during a probe, and ends. All breakers here
// handle it the same way.
var outageScript = []step{
	{calls: 15},
	{wait: 500 * time.Millisecond, calls: 14, err: errDown},
	{calls: 1, err: errDown}, // 15 of 30 failed
	{calls: 30},
	{wait: 4 * time.Second, calls: 5},
	{wait: 1100 * time.Millisecond, calls: 1, err: errDown}, // the probe
	{calls: 5},
	{wait: 5100 * time.Millisecond, calls: 1},
	{calls: 30},
	{wait: time.Second, calls: 25, err: errDown}, // 25 of 55 failed
	{calls: 10},
	{wait: 20 * time.Second, calls: 19, err: errDown}, // earlier calls have left the window
	{calls: 1, err: errDown},
	{calls: 5},
}
