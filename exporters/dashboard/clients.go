package dashboard

import (
	"context"
	"net/http"
	"runtime"
	"sync"
	"weak"
)

// clients are those who have a stream: bounded, and told when to go.
type clients struct {
	limit int

	mu      sync.Mutex
	closed  bool
	streams map[*client]struct{}
	servers map[weak.Pointer[http.Server]]struct{} // those that tell when they shut down
}

type client struct {
	server *http.Server // nil if it is no such server
	cancel context.CancelFunc
}

// maxStreams is the most streams that may be open at once.
const maxStreams = 32

func newClients() *clients {
	return &clients{limit: maxStreams, streams: map[*client]struct{}{}, servers: map[weak.Pointer[http.Server]]struct{}{}}
}

// enter lets one in, unless there are enough. The context ends when the request
// does or when the stream has to; leave must be called.
func (c *clients) enter(r *http.Request) (ctx context.Context, leave func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.streams) >= c.limit {
		return nil, nil, false
	}
	ctx, cancel := context.WithCancel(r.Context())
	one := &client{server: serverOf(r), cancel: cancel}
	c.streams[one] = struct{}{}
	return ctx, func() { c.leave(one) }, true
}

func (c *clients) leave(one *client) {
	one.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, one)
}

// watch makes the server of a request tell when it shuts down. Without that,
// http.Server.Shutdown would wait for streams that wait for it.
func (c *clients) watch(r *http.Request) {
	server := serverOf(r)
	if server == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known := weak.Make(server)
	if _, ok := c.servers[known]; ok {
		return
	}
	c.servers[known] = struct{}{}
	runtime.AddCleanup(server, c.forget, known)
	server.RegisterOnShutdown(func() { c.end(server) })
}

func (c *clients) forget(server weak.Pointer[http.Server]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.servers, server)
}

// end ends the streams of one server.
func (c *clients) end(server *http.Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for one := range c.streams {
		if one.server == server {
			one.cancel()
		}
	}
}

func (c *clients) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for one := range c.streams {
		one.cancel()
	}
}

func serverOf(r *http.Request) *http.Server {
	server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	return server
}
