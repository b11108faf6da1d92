package fleet

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"weak"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// Servers of a Cluster come and go, each with its own address.
func TestServersThatComeAndGoUseBoundedMemory(t *testing.T) {
	l := &Link{dialErrors: &dialErrors{}, timeout: defaultTimeout}
	s := newShards(nil, breaker.NewGroup[string]("shards", breaker.GroupConfig{}))
	var d dialErrors
	client, other := redis.NewClient(&redis.Options{}), redis.NewClient(&redis.Options{})
	defer func() { require.NoError(t, errors.Join(client.Close(), other.Close())) }()
	const most = 2000 // as SECURITY.md says
	for i := range 3 * most {
		client.Options().Addr = fmt.Sprintf("server%d:6379", i)
		n := s.node(client, l.newShard)
		require.Same(t, n, s.node(client, l.newShard))
		require.LessOrEqual(t, len(s.nodes), most)
		d.record(n.addr, errors.New("refused"))
		require.LessOrEqual(t, len(d.byAddr), most)
	}
	other.Options().Addr = client.Options().Addr
	require.NotSame(t, s.node(client, l.newShard), s.node(other, l.newShard), "another server may be there now")
}

func TestClientsOfServersThatAreGoneAreForgotten(t *testing.T) {
	d := dialErrors{watched: map[weak.Pointer[redis.Client]]struct{}{}}
	for range maxNodes {
		d.watched[weak.Make(new(redis.Client))] = struct{}{}
	}
	client := redis.NewClient(&redis.Options{})
	defer func() { require.NoError(t, client.Close()) }()
	runtime.GC()
	d.watchNode(client)
	require.Less(t, len(d.watched), maxNodes)
	require.Contains(t, d.watched, weak.Make(client))
}
