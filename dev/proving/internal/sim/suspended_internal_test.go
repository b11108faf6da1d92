package sim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// suspendedWorld is a healthy service with a client that is stopped for 5 s. Its calls take 1 s.
func suspendedWorld(c Client) World {
	c.Suspended = Span{10 * sec, 15 * sec}
	return World{
		Service: Service{Servers: 1e6, Time: Constant(sec)},
		Clients: []Client{c},
		For:     30 * sec,
	}
}

func TestASuspendedProcessSeesEverythingAtItsEnd(t *testing.T) {
	records, f := runRecorded(suspendedWorld(Client{Rate: 200, Timeout: 4 * sec}), 1)
	late := 0
	for _, r := range records {
		require.False(t, r.from >= 10*sec && r.from < 15*sec, "nothing begins")
		if r.to <= 10*sec || r.from >= 15*sec {
			require.NoError(t, r.result)
			require.Equal(t, sec, r.took())
			continue
		}
		require.Equal(t, 15*sec, r.to)
		require.ErrorIs(t, r.ctxErr, context.DeadlineExceeded, "4 s were over")
		require.ErrorIs(t, r.result, context.DeadlineExceeded)
		late++
	}
	require.InDelta(t, 200, late, 4*14.1, "the calls of a second are in flight")
	require.Equal(t, late, f.Failed)
	require.Zero(t, f.Series[12])
}

func TestAnAnswerInTimeIsSeenByASuspendedProcess(t *testing.T) {
	records, f := runRecorded(suspendedWorld(Client{Rate: 200, Timeout: 7 * sec}), 1)
	require.Equal(t, f.Offered, f.Good)
	for _, r := range records {
		require.NoError(t, r.ctxErr)
	}
}

func TestRetriesAndUsersOfASuspendedProcessContinueAfterIt(t *testing.T) {
	w := suspendedWorld(Client{Users: 50, Think: 100 * ms, Timeout: 3 * sec, Retries: 1, Backoff: 100 * ms})
	w.Service.ErrorRate = 0.5
	records, _ := runRecorded(w, 1)
	atOnce := map[int]int{}
	for _, r := range records {
		require.False(t, r.from >= 10*sec && r.from < 15*sec)
		if r.from == 15*sec {
			atOnce[min(r.number, 1)]++
		}
	}
	// Most users wait for an answer; a tenth of them thinks or is between two attempts.
	require.Positive(t, atOnce[0])
	require.Positive(t, atOnce[1])
	require.Less(t, atOnce[0]+atOnce[1], 25)
}

// A context of package context that is derived from that of the call must end with it.
func TestAGuardWithItsOwnContextIsSuspendedToo(t *testing.T) {
	var ends []time.Duration
	w := suspendedWorld(Client{Rate: 200, Timeout: 3 * sec})
	w.Service.Time = Constant(20 * sec)
	Run(w, Maker{Name: "derives", New: func(s Setting) Guard {
		return testGuard(func(ctx context.Context, f func(context.Context) error) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			err := f(ctx)
			if now := s.run.now(); now >= 10*sec && now < 16*sec {
				ends = append(ends, now)
			}
			return err
		})
	}}, 1)
	require.Greater(t, len(ends), 500)
	for _, at := range ends {
		require.Equal(t, 15*sec, at)
	}
}
