package fleet

import (
	"context"
	"net"
	"runtime"
	"sync"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"
)

// dials watches what becomes of a client's dials. The client repeats them in the background for longer than a decision may take, so that
// the error of the decision is that its time was up, and not why there is no connection.
type dials struct {
	mu     sync.Mutex
	byAddr map[string]dialed // the latest of each address that failed
}

type dialed struct {
	at  time.Time
	err error
}

// anyAddr stands for all addresses.
const anyAddr = ""

// watched has the dials of the clients that are watched. A client keeps a hook for as long as it lives, so all links of a client share
// one.
var watched struct {
	sync.Mutex
	byClient map[any]*dials // by a weak pointer to the client
}

// watchDials returns the dials of a client, which tells of them from the first call on.
func watchDials(client redis.UniversalClient) *dials {
	switch c := client.(type) {
	case *redis.Client:
		return watchOnce(c, c.AddHook)
	case *redis.ClusterClient:
		return watchOnce(c, func(hook redis.Hook) { c.OnNewNode(func(node *redis.Client) { node.AddHook(hook) }) })
	case *redis.Ring:
		return watchOnce(c, func(hook redis.Hook) { c.OnNewNode(func(node *redis.Client) { node.AddHook(hook) }) })
	}
	d := &dials{}
	client.AddHook(dialHook{d})
	return d
}

func watchOnce[C any](client *C, add func(redis.Hook)) *dials {
	key := any(weak.Make(client))
	watched.Lock()
	defer watched.Unlock()
	if d := watched.byClient[key]; d != nil {
		return d
	}
	if watched.byClient == nil {
		watched.byClient = map[any]*dials{}
	}
	d := &dials{}
	watched.byClient[key] = d
	runtime.AddCleanup(client, unwatch, key)
	add(dialHook{d})
	return d
}

// unwatch forgets a client that is gone.
func unwatch(key any) {
	watched.Lock()
	defer watched.Unlock()
	delete(watched.byClient, key)
}

// book remembers what became of a dial.
func (d *dials) book(addr string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		delete(d.byAddr, addr)
		return
	}
	if d.byAddr == nil || len(d.byAddr) >= maxNodes {
		d.byAddr = map[string]dialed{}
	}
	d.byAddr[addr] = dialed{time.Now(), err}
}

// failure is the error of the latest dial of an address, if that was after a time and failed.
func (d *dials) failure(addr string, since time.Time) (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for at, last := range d.byAddr {
		if (addr == anyAddr || addr == at) && last.at.After(since) {
			since, err = last.at, last.err
		}
	}
	return err
}

// dialHook is the hook of a client that watches its dials, and nothing else.
type dialHook struct{ *dials }

func (h dialHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		h.book(addr, err)
		return conn, err
	}
}

func (dialHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (dialHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
