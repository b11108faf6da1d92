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
		return watchOnce(c, func(d *dials) { c.AddHook(dialHook{dials: d}) })
	case *redis.ClusterClient:
		return watchOnce(c, func(d *dials) { c.OnNewNode(d.watchNode) })
	case *redis.Ring:
		return watchOnce(c, func(d *dials) { c.OnNewNode(d.watchNode) })
	}
	d := &dials{}
	client.AddHook(dialHook{dials: d})
	return d
}

func watchOnce[C any](client *C, add func(*dials)) *dials {
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
	add(d)
	return d
}

// watchNode watches a client for one of several servers.
func (d *dials) watchNode(node *redis.Client) { node.AddHook(dialHook{d, node.Options().Addr}) }

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

// dialHook is the hook of a client that watches its dials, and tells commands of ours to which of several servers they are sent.
type dialHook struct {
	*dials
	addr string // "" for a client of one server
}

func (h dialHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		h.book(addr, err)
		return conn, err
	}
}

func (h dialHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	if h.addr == "" {
		return next
	}
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.tell(cmd)
		return next(ctx, cmd)
	}
}

func (h dialHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	if h.addr == "" {
		return next
	}
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			h.tell(cmd)
		}
		return next(ctx, cmds)
	}
}

// tell tells a command of ours to which server it is sent.
func (h dialHook) tell(cmd redis.Cmder) {
	if c, ok := cmd.(interface{ SentTo(addr string) }); ok {
		c.SentTo(h.addr)
	}
}
