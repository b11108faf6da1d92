package redistest

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Cluster is a Redis Cluster of three masters without replicas. If a master is unavailable, the
// others still serve their slots.
type Cluster struct {
	t     TB
	Nodes []*Server
}

const slots = 16384

// StartCluster starts a cluster. It returns when every node reports that the cluster works,
// after about two seconds. The cluster is killed when the test ends.
func StartCluster(t TB) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	for range 3 {
		c.Nodes = append(c.Nodes, Options{Args: []string{
			"--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no",
		}}.Start(t))
	}
	for i, node := range c.Nodes {
		add := []any{"CLUSTER", "ADDSLOTS"}
		for slot := i * slots / 3; slot < (i+1)*slots/3; slot++ {
			add = append(add, slot)
		}
		node.Do(add...)
		node.Do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		if i > 0 {
			node.Do("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(c.Nodes[0].port))
		}
	}
	c.Await()
	return c
}

// Await returns when every node reports that the cluster works.
func (c *Cluster) Await() {
	c.t.Helper()
	for _, node := range c.Nodes {
		node.await("the cluster works", func(ctx context.Context, client *redis.Client) bool {
			info := client.ClusterInfo(ctx).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3") &&
				strings.Contains(info, "cluster_slots_ok:16384")
		})
	}
}

// Slot returns the slot of a key.
func (c *Cluster) Slot(key string) int {
	c.t.Helper()
	slot, err := strconv.Atoi(c.Nodes[0].Do("CLUSTER", "KEYSLOT", key))
	if err != nil {
		c.t.Fatalf("the slot of %q: %v", key, err)
	}
	return slot
}

// Home returns the number of the node that has a slot at the start.
func (c *Cluster) Home(slot int) int { return (slot*3 + 2) / slots }

// Migrate begins to move a slot. Its keys are still on the first node, and the second is ready to
// import them.
func (c *Cluster) Migrate(slot int, from, to *Server) {
	c.t.Helper()
	to.Do("CLUSTER", "SETSLOT", slot, "IMPORTING", from.Do("CLUSTER", "MYID"))
	from.Do("CLUSTER", "SETSLOT", slot, "MIGRATING", to.Do("CLUSTER", "MYID"))
}

// Settle moves a slot to a node and returns once all nodes agree. The node claims the slot with a
// new epoch, as it does at the end of a real migration. Without a new epoch, an older message of
// the previous owner would give the slot back to that owner.
func (c *Cluster) Settle(slot int, to *Server) {
	c.t.Helper()
	id := to.Do("CLUSTER", "MYID")
	if from := c.owner(slot, to); from != "" && from != id {
		to.Do("CLUSTER", "SETSLOT", slot, "IMPORTING", from)
	}
	to.Do("CLUSTER", "SETSLOT", slot, "NODE", id)
	for _, node := range c.Nodes {
		if node != to {
			node.Do("CLUSTER", "SETSLOT", slot, "NODE", id)
		}
	}
	for _, node := range c.Nodes {
		node.await("it knows where the slot is", func(context.Context, *redis.Client) bool { return c.owner(slot, node) == id })
	}
}

// owner returns the id of the node that owns a slot, according to another node. It is empty if that
// other node knows no owner.
func (c *Cluster) owner(slot int, asked *Server) string {
	c.t.Helper()
	for line := range strings.Lines(asked.Do("CLUSTER", "NODES")) {
		fields := strings.Fields(line)
		for _, text := range fields[min(8, len(fields)):] {
			first, last, isRange := strings.Cut(text, "-")
			if !isRange {
				last = first
			}
			low, err := strconv.Atoi(first)
			high, err2 := strconv.Atoi(last)
			if err == nil && err2 == nil && low <= slot && slot <= high {
				return fields[0]
			}
		}
	}
	return ""
}

// Addrs returns the addresses of the nodes.
func (c *Cluster) Addrs() (addrs []string) {
	for _, node := range c.Nodes {
		addrs = append(addrs, node.Addr())
	}
	return addrs
}

// Client returns a new client, which is closed when the test ends.
func (c *Cluster) Client() *redis.ClusterClient {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	c.t.Cleanup(func() { _ = client.Close() })
	return client
}
