package pipeline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// aboard returns a line of one lane, and the batch of three that it has under way.
func aboard(t *testing.T) (l *line, batch []*call) {
	t.Helper()
	l = &line{lanes: 1, batch: 10}
	for i := range 3 {
		c := waiting()
		batch = append(batch, c)
		require.Equal(t, i == 0, l.join(c))
	}
	require.Equal(t, batch, l.take(batch[0]))
	return l, batch
}

func waiting() *call { return &call{due: time.Now().Add(time.Hour)} }

func TestThoseWhoComeBackAtOnceGoTogetherAgain(t *testing.T) {
	l, batch := aboard(t)
	l.passAfter(batch)
	require.Equal(t, []bool{false, false, true}, []bool{batch[0].heir, batch[1].heir, batch[2].heir})

	first, second := waiting(), waiting()
	require.False(t, l.join(first), "the lane is the heir's")
	require.False(t, l.join(second))
	l.pass() // as the heir does when it runs
	require.Equal(t, lead, <-first.turn)
	require.Equal(t, []*call{first, second}, l.take(first))
	l.passAfter([]*call{first, second})
	require.True(t, second.heir)
	l.pass()
	require.Zero(t, l.busy)
}

func TestALaneIsPassedOnThoughTheHeirGivesUp(t *testing.T) {
	l, batch := aboard(t)
	l.leave(batch[2]) // before there are answers
	l.passAfter(batch)
	require.True(t, batch[1].heir)
	require.Equal(t, 1, l.busy)
	l.leave(batch[1]) // after that
	require.Zero(t, l.busy)

	l, batch = aboard(t)
	l.leave(batch[1])
	l.leave(batch[2])
	l.passAfter(batch)
	require.Zero(t, l.busy, "nobody is left to do it later")
}

func TestWhoWaitsGetsTheLaneAtOnce(t *testing.T) {
	l, batch := aboard(t)
	next := waiting()
	require.False(t, l.join(next))
	l.passAfter(batch)
	require.Equal(t, lead, <-next.turn)
	require.False(t, batch[2].heir)
	require.Equal(t, 1, l.busy)
}
