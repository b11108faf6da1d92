package pipeline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sentBatch returns a queue with one lane, and a batch of three calls that is being sent.
func sentBatch(t *testing.T) (l *queue, batch []*call) {
	t.Helper()
	l = &queue{lanes: 1, maxBatch: 10}
	for i := range 3 {
		c := waitingCall()
		batch = append(batch, c)
		require.Equal(t, i == 0, l.join(c))
	}
	require.Equal(t, batch, l.takeBatch(batch[0]))
	return l, batch
}

func waitingCall() *call { return &call{due: time.Now().Add(time.Hour)} }

func TestReturningCallersAreBatchedAgain(t *testing.T) {
	l, batch := sentBatch(t)
	l.endBatch(batch)
	require.Equal(t, []bool{false, false, true}, []bool{batch[0].nextLeader, batch[1].nextLeader, batch[2].nextLeader})

	first, second := waitingCall(), waitingCall()
	require.False(t, l.join(first), "the next leader has the lane")
	require.False(t, l.join(second))
	l.passLane() // as the next leader does when it wakes
	require.Equal(t, becomeLeader, <-first.wake)
	require.Equal(t, []*call{first, second}, l.takeBatch(first))
	l.endBatch([]*call{first, second})
	require.True(t, second.nextLeader)
	l.passLane()
	require.Zero(t, l.busy)
}

func TestLaneIsPassedOnIfTheNextLeaderGivesUp(t *testing.T) {
	l, batch := sentBatch(t)
	l.leave(batch[2]) // before there are answers
	l.endBatch(batch)
	require.True(t, batch[1].nextLeader)
	require.Equal(t, 1, l.busy)
	l.leave(batch[1]) // after that
	require.Zero(t, l.busy)

	l, batch = sentBatch(t)
	l.leave(batch[1])
	l.leave(batch[2])
	l.endBatch(batch)
	require.Zero(t, l.busy, "no caller is left to pass the lane on")
}

func TestQueuedCallerGetsTheLaneAtOnce(t *testing.T) {
	l, batch := sentBatch(t)
	next := waitingCall()
	require.False(t, l.join(next))
	l.endBatch(batch)
	require.Equal(t, becomeLeader, <-next.wake)
	require.False(t, batch[2].nextLeader)
	require.Equal(t, 1, l.busy)
}
