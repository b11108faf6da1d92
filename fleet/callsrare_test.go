package fleet_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/window"
)

// tripCounter counts the round trips of scripts.
type tripCounter struct{ trips, scripts atomic.Int64 }

func (*tripCounter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *tripCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			c.trips.Add(1)
			c.scripts.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (c *tripCounter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "evalsha" {
			c.trips.Add(1)
			c.scripts.Add(int64(len(cmds)))
		}
		return next(ctx, cmds)
	}
}

// Ten windows of a link share round trips, and those without calls flush four times per Span.
func TestIdleWindowsFlushRarelyAndShareRoundTrips(t *testing.T) {
	t.Parallel()
	for name, busy := range map[string]bool{"busy": true, "idle": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := newClient(t, sharedServer())
			count := &tripCounter{}
			client.AddHook(count)
			l := connectTo(t, client, fleet.LinkConfig{Timeout: longTimeout})
			const windows, span = 10, 4 * time.Second
			for i := range windows {
				c := newCalls(l, nameOfTest(t)+string(rune('a'+i)), fleet.CallsConfig{Span: span, Interval: span / 10})
				m := runMember(t, c)
				requireSoon(t, func() bool { return m.Flushes() > 0 })
				if busy {
					c.Record(window.Success, 0)
				}
			}
			trips, scripts := count.trips.Load(), count.scripts.Load()
			<-time.After(span)
			trips, scripts = count.trips.Load()-trips, count.scripts.Load()-scripts
			t.Logf("%d scripts in %d round trips", scripts, trips)
			require.LessOrEqual(t, trips, scripts/3)
			if busy {
				require.LessOrEqual(t, scripts, int64(22*windows))
				require.GreaterOrEqual(t, scripts, int64(10*windows))
			} else {
				require.LessOrEqual(t, scripts, int64(5*windows))
				require.GreaterOrEqual(t, scripts, int64(2*windows))
			}
		})
	}
}
