package fleet

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet/internal/pipeline"
)

// node is one server: the stand-alone Redis, a master of a Cluster, or a shard of a Ring.
type node struct {
	addr   string                // "" for a stand-alone one, whose client alone knows it
	client redis.UniversalClient // to ask the server about itself
	writer *pipeline.Writer
}

// newNode makes a node. What is asked about keys goes through the link's client, which follows redirects.
func (l *Link) newNode(client redis.UniversalClient, addr string) *node {
	return &node{addr: addr, client: client, writer: pipeline.New(l.client, pipeline.Config{Timeout: l.timeout})}
}

// shards are the servers among which the keys are divided, and the breakers before them.
type shards struct {
	locate   locate
	known    atomic.Bool // the client has learnt where the keys are, so that locate asks nobody
	breakers *breaker.Group[string]

	mu    sync.RWMutex
	nodes map[string]*node // by address
}

// maxNodes bounds the nodes that are remembered, for addresses come and go. A Cluster has 1,000 at most.
const maxNodes = 2000

// locate finds the client of the server that has a key.
type locate func(ctx context.Context, key string) (*redis.Client, error)

// locator is how a client for several servers finds that of a key, nil for other clients.
func locator(client redis.UniversalClient) locate {
	switch c := client.(type) {
	case *redis.ClusterClient:
		return c.MasterForKey
	case *redis.Ring:
		return func(_ context.Context, key string) (*redis.Client, error) { return c.GetShardClientForKey(key) }
	}
	return nil
}

func newShards(locate locate, breakers *breaker.Group[string]) *shards {
	return &shards{locate: locate, breakers: breakers, nodes: map[string]*node{}}
}

// node is the node behind a client. A new client at an address that is known may lead to another server, so it is a new node.
func (s *shards) node(client *redis.Client, create func(redis.UniversalClient, string) *node) *node {
	addr := client.Options().Addr
	s.mu.RLock()
	n := s.nodes[addr]
	s.mu.RUnlock()
	if n != nil && n.client == client {
		return n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n = s.nodes[addr]; n != nil && n.client == client {
		return n
	}
	if len(s.nodes) >= maxNodes {
		clear(s.nodes) // those that are still there are met anew
	}
	n = create(client, addr)
	s.nodes[addr] = n
	return n
}
