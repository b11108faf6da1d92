package fleet_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/window"
)

// threeNodes holds three nodes, each with its own client, and the sum of their counts.
type threeNodes struct {
	t        *testing.T
	nodes    []member
	recorded int64
}

// longWindow is like fastFlushes, but its window is longer than any test.
var longWindow = fleet.CallsConfig{Span: 5 * time.Minute, Buckets: 10, Interval: fastFlushes.Interval}

// linkTo returns a link with a short Timeout and a short cooldown.
func linkTo(t *testing.T, o *redis.Options) *fleet.Link {
	return linkWithin(t, o, 100*time.Millisecond)
}

// linkWithin returns a link with the given Timeout and a short cooldown.
func linkWithin(t *testing.T, o *redis.Options, timeout time.Duration) *fleet.Link {
	o.ContextTimeoutEnabled = true
	o.DialerRetries = 1
	o.DialTimeout = 100 * time.Millisecond
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return connectTo(t, c, fleet.LinkConfig{
		Timeout: timeout, Breaker: breaker.Config{Cooldown: 30 * time.Millisecond, CooldownFactor: 1},
	})
}

func newThreeNodes(t *testing.T, o *redis.Options) *threeNodes {
	return newThreeNodesWithin(t, o, 100*time.Millisecond)
}

func newThreeNodesWithin(t *testing.T, o *redis.Options, timeout time.Duration) *threeNodes {
	c := &threeNodes{t: t}
	for range 3 {
		own := *o
		c.nodes = append(c.nodes, join(t, linkWithin(t, &own, timeout), longWindow))
	}
	for _, n := range c.nodes {
		requireSoon(t, func() bool { return n.Flushes() > 0 })
	}
	return c
}

// countFailures makes every node count one failure per millisecond.
func (c *threeNodes) countFailures(d time.Duration) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range d.Milliseconds() {
		for _, n := range c.nodes {
			n.record(window.Failure, 1)
			c.recorded++
		}
		<-tick.C
	}
}

// requireAll waits until every node knows of each call once.
func (c *threeNodes) requireAll() {
	c.t.Helper()
	want := failedCounts(c.recorded)
	for _, n := range c.nodes {
		require.Eventually(c.t, func() bool { return n.Counts() == want }, time.Minute, time.Millisecond, "want %v, has %v", want, n.Counts())
	}
	for _, n := range c.nodes {
		require.Never(c.t, func() bool { return n.Counts() != want }, 5*longWindow.Interval, time.Millisecond)
		require.Equal(c.t, window.Totals(want), n.Totals())
		require.Zero(c.t, n.Late())
		require.Zero(c.t, n.Lost())
	}
}

// requireAgreement waits until all nodes have sent all of their calls, know the calls of the other
// nodes, and have the same counts. It returns the number of failures.
func (c *threeNodes) requireAgreement() int64 {
	c.t.Helper()
	c.awaitFlushes() // of all calls, to Redis
	c.awaitFlushes() // of all calls, to the other nodes
	requireSoon(c.t, func() bool {
		counts := c.nodes[0].Counts()
		for _, n := range c.nodes {
			if n.Counts() != counts || n.Err() != nil || n.Lag() > 3*longWindow.Interval {
				return false
			}
		}
		return true
	})
	return c.nodes[0].Counts().Failures
}

// awaitFlushes waits until each node has flushed three times more: the first flush may have begun
// before, and the second may repeat one without a reply.
func (c *threeNodes) awaitFlushes() {
	c.t.Helper()
	for _, n := range c.nodes {
		before := n.Flushes()
		requireSoon(c.t, func() bool { return n.Flushes() >= before+3 })
	}
}

// requireFault waits until the first node reports the fault.
func (c *threeNodes) requireFault(want string) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		e, ok := errors.AsType[*fleet.StoreError](c.nodes[0].Err())
		return ok && e.Fault == want
	}, 10*time.Second, 100*time.Microsecond, "%s", want)
}
