package fleet

import (
	"context"
	"maps"
	"net"
	"runtime"
	"sync"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/fleet/internal/resp"
)

// dialErrors records the failed dials of a client. The client repeats dials in the background for
// longer than a decision may take, so the error of the decision is a timeout that does not say why
// there is no connection.
type dialErrors struct {
	mu     sync.Mutex
	byAddr map[string]dialError // the latest per address
	// watched are the clients that have the hook, if there are several servers.
	watched map[weak.Pointer[redis.Client]]struct{}
}

type dialError struct {
	at  time.Time
	err error
}

// anyAddr stands for all addresses.
const anyAddr = ""

// dialErrorsOf holds the dialErrors of each client. A client keeps its hooks forever, so all links
// of a client share one hook.
var dialErrorsOf struct {
	sync.Mutex
	byClient map[any]*dialErrors // by a weak pointer to the client
}

// watchDialErrors returns the dialErrors of a client. The first call for a client adds the hook.
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

func watchOnce[C any](client *C, addHook func(*dialErrors)) *dialErrors {
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
	runtime.AddCleanup(client, forgetClient, key)
	addHook(d)
	return d
}

// watchNode adds the hook to the client of one of several servers, unless it has it.
func (d *dialErrors) watchNode(node *redis.Client) {
	key := weak.Make(node)
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.watched[key]; ok {
		return
	}
	if d.watched == nil {
		d.watched = map[weak.Pointer[redis.Client]]struct{}{}
	}
	if len(d.watched) >= maxNodes {
		maps.DeleteFunc(d.watched, func(k weak.Pointer[redis.Client], _ struct{}) bool { return k.Value() == nil })
	}
	d.watched[key] = struct{}{}
	node.AddHook(dialHook{d, node.Options().Addr})
}

// forgetClient forgets a client that was garbage collected.
func forgetClient(key any) {
	dialErrorsOf.Lock()
	defer dialErrorsOf.Unlock()
	delete(dialErrorsOf.byClient, key)
}

// record records the result of a dial.
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

// latest returns the error of the latest dial of an address if it failed after since. A dial that
// is later than now was in another clock, such as that of a testing/synctest bubble.
func (d *dialErrors) latest(addr string, since time.Time) (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for at, last := range d.byAddr {
		if (addr == anyAddr || addr == at) && last.at.After(since) && time.Since(last.at) >= 0 {
			since, err = last.at, last.err
		}
	}
	return err
}

// dialHook observes the dials of a client, and bounds replies. If the client is for one of several
// servers, the hook also tells commands of this package which server they are sent to.
type dialHook struct {
	*dialErrors
	addr string // "" for a client of one server
}

// DialHook records the result of each dial, and bounds the replies of each connection.
func (h dialHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if h.record(addr, err); err == nil {
			conn = resp.Bound(conn)
		}
		return conn, err
	}
}

// ProcessHook tells a command which server it is sent to.
func (h dialHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	if h.addr == "" {
		return next
	}
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.setServer(cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook does the same for several commands.
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

func (h dialHook) setServer(cmd redis.Cmder) {
	if c, ok := cmd.(interface{ SentTo(addr string) }); ok {
		c.SentTo(h.addr)
	}
}
