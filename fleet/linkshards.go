package fleet

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet/internal/pipeline"
)

// node is one server: a stand-alone Redis, a master of a Cluster, or a shard of a Ring.
type node struct {
	addr   string                // "" for a stand-alone Redis
	client redis.UniversalClient // for questions about the server itself
	writer *pipeline.Writer
	// flushes sends the flushes of all Calls of the link together.
	flushes *pipeline.Writer
}

// gatherTime is how long a flush waits for those of other Calls. They are due at the same time.
const gatherTime = 2 * time.Millisecond

// newNode returns a node. Its writer uses the client of the link, which follows redirects.
func (l *Link) newNode(client redis.UniversalClient, addr string) *node {
	return &node{
		addr: addr, client: client, writer: pipeline.New(l.client, pipeline.Config{Timeout: l.timeout}),
		flushes: pipeline.New(l.client, pipeline.Config{Timeout: l.timeout, Lanes: 1, Gather: min(gatherTime, l.timeout/8)}),
	}
}

// newShard returns the node of one of several servers.
func (l *Link) newShard(client *redis.Client) *node {
	l.dialErrors.watchNode(client)
	return l.newNode(client, client.Options().Addr)
}

// watchShards watches the servers that the client already knows. It may ask which these are.
func (l *Link) watchShards(ctx context.Context) error {
	watch := func(_ context.Context, node *redis.Client) error {
		l.dialErrors.watchNode(node)
		return nil
	}
	switch c := l.client.(type) {
	case *redis.ClusterClient:
		return c.ForEachShard(ctx, watch)
	case *redis.Ring:
		return c.ForEachShard(ctx, watch)
	}
	return nil
}

// shards are the servers of a Cluster or a Ring, and their breakers.
type shards struct {
	locate   locate
	known    atomic.Bool // locate does not send a request to a server
	breakers *breaker.Group[string]

	mu    sync.RWMutex
	nodes map[string]*node // by address
}

// maxNodes bounds the nodes that are remembered, because addresses come and go. A Cluster has at
// most 1,000.
const maxNodes = 2000

// locate returns the client of the server that has a key.
type locate func(ctx context.Context, key string) (*redis.Client, error)

// locator returns the locate function of a client with several servers, or nil for other clients.
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

// node returns the node of a client. A new client gets a new node even if its address is known,
// because it may lead to another server.
func (s *shards) node(client *redis.Client, create func(*redis.Client) *node) *node {
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
		clear(s.nodes) // servers in use get a new node
	}
	n = create(client)
	s.nodes[addr] = n
	return n
}
