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
type dialErrors struct {
	mu     sync.Mutex
	byAddr map[string]dialError // the latest of each address that failed
}

type dialError struct {
	at  time.Time
	err error
}

// anyAddr stands for all addresses.
const anyAddr = ""

// watched has the dials of the clients that are watched. A client keeps a hook for as long as it lives, so all links of a client share
// one.
var dialErrorsOf struct {
	sync.Mutex
	byClient map[any]*dialErrors // by a weak pointer to the client
}

// watchDials returns the dials of a client, which tells of them from the first call on.
func watchDialErrors(client redis.UniversalClient) *dialErrors {
	switch c := client.(type) {
	case *redis.Client:
		return watchOnce(c, func(d *dialErrors) { c.AddHook(dialHook{dialErrors: d}) })
	case *redis.ClusterClient:
		return watchOnce(c, func(d *dialErrors) { c.OnNewNode(d.watchNode) })
	case *redis.Ring:
		return watchOnce(c, func(d *dialErrors) { c.OnNewNode(d.watchNode) })
	}
	d := &dialErrors{}
	client.AddHook(dialHook{dialErrors: d})
	return d
}

func watchOnce[C any](client *C, add func(*dialErrors)) *dialErrors {
	key := any(weak.Make(client))
	dialErrorsOf.Lock()
	defer dialErrorsOf.Unlock()
	if d := dialErrorsOf.byClient[key]; d != nil {
		return d
	}
	if dialErrorsOf.byClient == nil {
		dialErrorsOf.byClient = map[any]*dialErrors{}
	}
	d := &dialErrors{}
	dialErrorsOf.byClient[key] = d
	runtime.AddCleanup(client, unwatch, key)
	add(d)
	return d
}

// watchNode watches a client for one of several servers.
func (d *dialErrors) watchNode(node *redis.Client) { node.AddHook(dialHook{d, node.Options().Addr}) }

// unwatch forgets a client that is gone.
func unwatch(key any) {
	dialErrorsOf.Lock()
	defer dialErrorsOf.Unlock()
	delete(dialErrorsOf.byClient, key)
}

// book remembers what became of a dial.
func (d *dialErrors) record(addr string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		delete(d.byAddr, addr)
		return
	}
	if d.byAddr == nil || len(d.byAddr) >= maxNodes {
		d.byAddr = map[string]dialError{}
	}
	d.byAddr[addr] = dialError{time.Now(), err}
}

// failure is the error of the latest dial of an address, if that was after a time and failed.
func (d *dialErrors) latest(addr string, since time.Time) (err error) {
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
	*dialErrors
	addr string // "" for a client of one server
}

func (h dialHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		h.record(addr, err)
		return conn, err
	}
}

func (h dialHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	if h.addr == "" {
		return next
	}
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.setServer(cmd)
		return next(ctx, cmd)
	}
}

func (h dialHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	if h.addr == "" {
		return next
	}
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			h.setServer(cmd)
		}
		return next(ctx, cmds)
	}
}

// tell tells a command of ours to which server it is sent.
func (h dialHook) setServer(cmd redis.Cmder) {
	if c, ok := cmd.(interface{ SentTo(addr string) }); ok {
		c.SentTo(h.addr)
	}
}
