package redistest

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Cluster is a Redis Cluster of three masters without replicas.
type Cluster struct {
	t     TB
	Nodes []*Server
}

const slots = 16384

// StartCluster starts a cluster and returns when every node says that it is well,
// about two seconds later. It is killed when the test is over.
func StartCluster(t TB) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	for range 3 {
		c.Nodes = append(c.Nodes, Options{Args: []string{"--cluster-enabled", "yes", "--cluster-node-timeout", "2000"}}.Start(t))
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
	for _, node := range c.Nodes {
		node.await("the cluster is well", func(ctx context.Context, client *redis.Client) bool {
			info := client.ClusterInfo(ctx).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3")
		})
	}
	return c
}

// Addrs are the addresses of the nodes.
func (c *Cluster) Addrs() (addrs []string) {
	for _, node := range c.Nodes {
		addrs = append(addrs, node.Addr())
	}
	return addrs
}

// Client returns a new client, which is closed when the test is over.
func (c *Cluster) Client() *redis.ClusterClient {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	c.t.Cleanup(func() { _ = client.Close() })
	return client
}
