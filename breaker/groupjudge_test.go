package breaker_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/window"
)

// busyGroup is a group whose keys have many callers. Other keys compete for the same room.
// busyGroup itself counts the results of each key too.
type busyGroup struct {
	group  *breaker.Group[string]
	mu     sync.Mutex
	counts [12]window.Counts
}

func (c *busyGroup) countOutcome(key int, o breaker.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o == breaker.Failure {
		c.counts[key].Failures++
	} else {
		c.counts[key].Successes++
	}
}

// callAllKeys makes calls of all keys at the time u, while it evicts members.
func (c *busyGroup) callAllKeys(t *testing.T, seed uint64, u time.Time, judge func(*rand.Rand) breaker.Outcome) {
	c.counts = [12]window.Counts{}
	var wg sync.WaitGroup
	for worker := range 6 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(worker)))
			for i := range 40 {
				if worker < 2 {
					c.group.GetAt(u, fmt.Sprint("new ", seed, worker, i))
					continue
				}
				key := r.IntN(len(c.counts))
				p, err := c.group.GetAt(u, fmt.Sprint(key)).AllowAt(u)
				if err != nil {
					assertOpen(t, err)
					continue
				}
				if o := judge(r); p.RecordAt(u, o) {
					c.countOutcome(key, o)
				}
			}
		})
	}
	wg.Wait()
}

func assertOpen(t *testing.T, err error) {
	if !errors.Is(err, breaker.ErrOpen) {
		t.Error(err)
	}
}

// Scenario A45. The calls of a key are judged together, and all callers see the same state, however
// many other keys come and go.
func TestCallsOfAKeyAreJudgedTogetherWhileMembersAreEvicted(t *testing.T) {
	const limit = 15
	rounds := testenv.Repeat(300, 50)
	c := &busyGroup{group: newEvictableGroup(128, breaker.Config{MinCalls: limit, FailureRate: 1, FailureRun: breaker.Off})}
	open := 0
	for round := range rounds {
		u := after(time.Duration(round) * time.Minute)
		fails := round%2 == 0 // in every second round calls also succeed, so that no breaker opens
		c.callAllKeys(t, uint64(round), u, func(r *rand.Rand) breaker.Outcome {
			if fails || r.IntN(2) == 0 {
				return breaker.Failure
			}
			return breaker.Success
		})
		for key, want := range c.counts {
			b := c.group.GetAt(u, fmt.Sprint(key))
			got, opens := b.CountsAt(u), fails && want.Failures >= limit
			require.Equal(t, opens, b.StateAt(u) == breaker.Open, "round %d, key %d", round, key)
			if opens { // the first of the failures opened it; some more came at the same time
				want.Failures = min(want.Failures, max(got.Failures, limit))
				open++
			}
			require.Equal(t, want.Failures, got.Failures, "round %d, key %d", round, key)
			require.Equal(t, want.Successes, got.Successes, "round %d, key %d", round, key)
			b.ResetAt(u)
		}
	}
	require.Zero(t, c.group.Stats().Unguarded)
	require.Greater(t, c.group.Stats().Evictions, int64(rounds*40))
	require.Greater(t, open, rounds)
	t.Logf("%+v, opened %d times", c.group.Stats(), open)
}
