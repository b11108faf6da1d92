package fleet_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/internal/redistest"
	"github.com/weir-go/weir/window"
)

// addNodes writes n nodes into a window, as the script would. They were last seen at the given
// time.
func addNodes(t *testing.T, c *redis.Client, key string, first, n int, seen time.Duration) {
	for from := first; from < first+n; from += 1000 {
		_, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			for i := from; i < min(from+1000, first+n); i++ {
				p.HSet(t.Context(), key, fmt.Sprintf("nCROWD%020d", i), fmt.Sprintf("1 %d 1 0 0 0 0 0 0", seen.Microseconds()))
			}
			return nil
		})
		require.NoError(t, err)
	}
}

// nodes returns how many nodes a window knows.
func nodes(t *testing.T, c *redis.Client, key string) (n int) {
	fields, err := c.HKeys(t.Context(), key).Result()
	require.NoError(t, err)
	for _, field := range fields {
		if strings.HasPrefix(field, "n") {
			n++
		}
	}
	return n
}

// Entries of old processes stay for two hours. A new process does not read all of them.
func TestTheCostOfANewNodeDoesNotDependOnEarlierNodes(t *testing.T) {
	s := redistest.Start(t)
	c := newClient(t, s)
	l := connectTo(t, c, fleet.LinkConfig{Timeout: longTimeout})
	cost := func(others int) (least time.Duration) {
		shared := newCalls(l, fmt.Sprint("nodes", others), fleet.CallsConfig{})
		addNodes(t, c, shared.Key(), 0, others, time.Duration(time.Now().UnixNano()))
		require.NoError(t, c.HSet(t.Context(), shared.Key(), "life", "c1").Err())
		for range 20 {
			before := scriptTime(s)
			countOnce(t, newCalls(l, fmt.Sprint("nodes", others), fleet.CallsConfig{}))
			if took := scriptTime(s) - before; least == 0 || took < least {
				least = took
			}
		}
		require.Equal(t, others+20, nodes(t, c, shared.Key()), "all of them are remembered")
		return least
	}
	few, many := cost(1000), cost(60_000)
	t.Logf("the first flush of a node beside 1,000: %v, beside 60,000: %v", few, many)
	require.Less(t, many, 4*few+time.Millisecond)
}

// countOnce counts a call on a node and flushes it.
func countOnce(t *testing.T, shared recorder) {
	shared.Record(window.Success, 0)
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, shared.Run(ended)) // flushes as it ends
	require.NoError(t, shared.Err())
}

// scriptTime returns how long a server has spent in scripts.
func scriptTime(s *redistest.Server) (spent time.Duration) {
	for line := range strings.Lines(s.Do("INFO", "commandstats")) {
		if name, rest, _ := strings.Cut(line, ":"); name == "cmdstat_evalsha" || name == "cmdstat_eval" {
			_, rest, _ = strings.Cut(rest, "usec=")
			usec, _, _ := strings.Cut(rest, ",")
			n, _ := strconv.Atoi(usec)
			spent += time.Duration(n) * time.Microsecond
		}
	}
	return spent
}

// Nodes that were last seen far in the future are forgotten too. They came while the clock was
// ahead, and would otherwise stay until that time.
func TestExpiredNodesAreForgotten(t *testing.T) {
	s := newTestFleet(t)
	keep := 2*5*time.Second + 2*time.Hour
	c := newClient(t, sharedServer())
	first := s.node()
	first.Count(failedCounts(1))
	s.exchange(first)
	key := keyOf(t)
	addNodes(t, c, key, 0, 1000, s.now-keep-time.Minute)
	addNodes(t, c, key, 1000, 1000, s.now+365*24*time.Hour)
	addNodes(t, c, key, 2000, 1000, s.now-keep+time.Minute)
	// each looks at 50 of 3,000 nodes, so 60 look at all; 60 more because the key is rebuilt
	const more = 150
	for range more {
		n := s.node()
		n.Count(failedCounts(1))
		s.exchange(n)
	}
	require.Equal(t, 1+1000+more, nodes(t, c, key))
	s.exchange(first)
	s.requireWindow(failedCounts(1+more), first)
}
