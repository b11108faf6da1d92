package fleet_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/window"
)

// flush counts a success on a node, flushes it, and returns the error.
func flush(t *testing.T, shared recorder) error {
	shared.Record(window.Success, 0)
	ended, end := context.WithCancel(t.Context())
	end()
	shared.Run(ended) // flushes as it ends
	return shared.Err()
}

// A proxy may answer anything.
func TestAnAnswerOfTheWrongLengthToAFlushIsAnError(t *testing.T) {
	for _, answer := range []string{integerReply(), integerReply(1), integerReply(1, 2, 3), integerReply(make([]int64, 15)...), integerReply(make([]int64, 20)...)} {
		f := newFakeServer(t, map[string]string{"eval": integerReply(1), "evalsha": answer})
		shared := newCalls(connectTo(t, f.client(), fleet.LinkConfig{Timeout: time.Second}), "short", fleet.CallsConfig{})
		require.ErrorIs(t, flush(t, shared), fleet.ErrUnavailable, answer)
		require.EqualValues(t, 1, shared.Counts().Successes, answer)
	}
}

func TestNumbersOutOfRangeInAWindowAreForeign(t *testing.T) {
	l, direct := connect(t), newClient(t, sharedServer())
	for _, c := range []struct{ field, value string }{
		{"total", "99999999999999999999 0 0 0 0 0"},
		{"total", "9007199254740993000 0 0 0 0 0"},
		{"0", "99999999999999999999999 1 1 1 1 1 1"},
		{"1", "1 " + strings.Repeat("9", 400) + " 1 1 1 1 1"},
		{"total", "0 0 0 0 0 0" + strings.Repeat(" ", 10_000)},
		{"life", "c99999999999999999999999"},
	} {
		name := newKey()
		first := newCalls(l, name, fleet.CallsConfig{})
		require.NoError(t, flush(t, first))
		require.NoError(t, direct.HSet(t.Context(), first.Key(), c.field, c.value).Err())
		held := direct.HGetAll(t.Context(), first.Key()).Val()
		require.ErrorIs(t, flush(t, first), fleet.ErrForeign, "%s %.40q", c.field, c.value)
		require.Equal(t, held, direct.HGetAll(t.Context(), first.Key()).Val(), "the value is unchanged")
	}
}

// The script searches for expired nodes after it has written the first flush of a new node. An
// invalid cursor must therefore not make the flush fail.
func TestSweepRestartsAfterAForeignCursor(t *testing.T) {
	l, direct := connect(t), newClient(t, sharedServer())
	first := newCalls(l, "search", fleet.CallsConfig{})
	require.NoError(t, flush(t, first))
	for _, cursor := range []string{strings.Repeat("9", 40), "x", ""} {
		require.NoError(t, direct.HSet(t.Context(), first.Key(), "sweep", cursor).Err())
		require.NoError(t, flush(t, newCalls(l, "search", fleet.CallsConfig{})), "%q", cursor)
		require.Equal(t, "0", direct.HGet(t.Context(), first.Key(), "sweep").Val(), "%q", cursor)
	}
}
