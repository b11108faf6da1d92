package fleet

import (
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// Servers of a Cluster come and go, each with its own address.
func TestServersThatComeAndGoUseBoundedMemory(t *testing.T) {
	l := &Link{timeout: defaultTimeout}
	s := newShards(nil, breaker.NewGroup[string]("shards", breaker.GroupConfig{}))
	var d dialErrors
	client, other := redis.NewClient(&redis.Options{}), redis.NewClient(&redis.Options{})
	defer func() { require.NoError(t, errors.Join(client.Close(), other.Close())) }()
	const most = 2000 // as SECURITY.md says
	for i := range 3 * most {
		client.Options().Addr = fmt.Sprintf("server%d:6379", i)
		n := s.node(client, l.newNode)
		require.Same(t, n, s.node(client, l.newNode))
		require.LessOrEqual(t, len(s.nodes), most)
		d.record(n.addr, errors.New("refused"))
		require.LessOrEqual(t, len(d.byAddr), most)
	}
	other.Options().Addr = client.Options().Addr
	require.NotSame(t, s.node(client, l.newNode), s.node(other, l.newNode), "another server may be there now")
}
