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

// step makes a number of calls, some time after the step before, that all end the same way.
type step struct {
	wait  time.Duration
	calls int
	err   error // what the service answers; nil for a user
}

// side is one of the two that are compared: what it answers, and how often it asked the service.
type side struct {
	get   func(ctx context.Context, get fetch, id int) (*User, error)
	asked int
}

func (s *side) call(ctx context.Context, answer error) (*User, error) {
	return s.get(ctx, func(_ context.Context, id int) (*User, error) {
		s.asked++
		if answer != nil {
			return nil, answer
		}
		return &User{id}, nil
	}, 7)
}

// alike makes both sides in a bubble of their own and compares them.
func alike(t *testing.T, theirs, ours func() *side, script []step) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { compare(t, theirs(), ours(), script) })
}

// compare gives both sides the same calls and wants the same answers, and the service asked as often.
func compare(t *testing.T, theirs, ours *side, script []step) {
	t.Helper()
	for n, s := range script {
		time.Sleep(s.wait)
		for i := range s.calls {
			user, err := theirs.call(t.Context(), s.err)
			got, gotErr := ours.call(t.Context(), s.err)
			require.Equalf(t, err, gotErr, "step %d, call %d", n, i)
			require.Equalf(t, user, got, "step %d, call %d", n, i)
			require.Equalf(t, theirs.asked, ours.asked, "step %d, call %d: asked", n, i)
		}
	}
}

// refusals counts how many of so many calls are refused.
func refusals(t *testing.T, s *side, calls int, answer error) (n int) {
	t.Helper()
	for range calls {
		if _, err := s.call(t.Context(), answer); errors.Is(err, ErrUnavailable) {
			n++
		}
	}
	return n
}

// outage is one that all breakers here see alike: it begins among good calls, goes on through a
// probe, and ends.
var outage = []step{
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
	{wait: 20 * time.Second, calls: 19, err: errDown}, // what was before has left the window
	{calls: 1, err: errDown},
	{calls: 5},
}
