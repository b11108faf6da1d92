package dashboard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"time"
	"weak"
)

// writeTimeout is how long a client may take to read an event before it is disconnected.
const writeTimeout = 10 * time.Second

// stream sends a snapshot, and then a delta after each sample. No deltas are queued: a client that
// is too slow misses some and gets another snapshot.
func (p *Page) stream(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		return
	}
	ctx, leave, err := p.clients.add(r)
	if err != nil {
		w.Header().Set("Retry-After", "10")
		http.Error(w, err.Error()+": poll snapshot.json instead", http.StatusServiceUnavailable)
		return
	}
	defer leave()

	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would buffer events
	out := eventWriter{http.NewResponseController(w), w}

	var seen uint64 // the last update sent
	f, err := p.sampler.latest(ctx)
	for ; err == nil; f, err = p.sampler.nextAfter(ctx, seen) {
		if seen > 0 && f.seq == seen+1 {
			seen, err = f.seq, out.send("delta", f.delta)
		} else {
			n, content := p.sampler.snapshot()
			seen, err = n, out.send("snapshot", content)
		}
		if err != nil {
			return
		}
	}
}

// eventWriter writes server-sent events.
type eventWriter struct {
	control *http.ResponseController
	w       http.ResponseWriter
}

// send writes and flushes an event. The data must be one line. It fails if the client has
// disconnected or does not read, or if a wrapper of the ResponseWriter cannot flush. The page then
// polls snapshots.
func (e eventWriter) send(name string, data []byte) error {
	// If the ResponseWriter cannot set deadlines, the write deadline of the server applies.
	_ = e.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	var event bytes.Buffer
	event.Grow(len(data) + 32)
	event.WriteString("event: " + name + "\ndata: ")
	event.Write(data)
	event.WriteString("\n\n")
	if _, err := e.w.Write(event.Bytes()); err != nil {
		return err
	}
	return e.control.Flush()
}

// clients are the open streams. Their number is bounded, and they end when their server shuts down.
type clients struct {
	limit int

	mu      sync.Mutex
	closed  bool
	streams map[*client]struct{}
	servers map[weak.Pointer[http.Server]]struct{} // servers with a shutdown hook
}

type client struct {
	server *http.Server // nil if the request did not come through an http.Server
	cancel context.CancelFunc
}

// maxStreams is the maximum number of streams that may be open at once.
const maxStreams = 32

func newClients() *clients {
	return &clients{limit: maxStreams, streams: map[*client]struct{}{}, servers: map[weak.Pointer[http.Server]]struct{}{}}
}

// add adds a stream. The error says why there is none. ctx is done when the request or the stream
// ends. The caller must call leave.
func (c *clients) add(r *http.Request) (ctx context.Context, leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, nil, errors.New("the page was closed")
	case len(c.streams) >= c.limit:
		return nil, nil, fmt.Errorf("%d streams are open, which is the most", c.limit)
	}
	ctx, cancel := context.WithCancel(r.Context())
	one := &client{server: serverOf(r), cancel: cancel}
	c.streams[one] = struct{}{}
	return ctx, func() { c.remove(one) }, nil
}

func (c *clients) remove(one *client) {
	one.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, one)
}

// watchServer ends the streams of the request's server when that shuts down. Otherwise
// http.Server.Shutdown would wait for streams that never end.
func (c *clients) watchServer(r *http.Request) {
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
	runtime.AddCleanup(server, c.forgetServer, known)
	server.RegisterOnShutdown(func() { c.endStreamsOf(server) })
}

func (c *clients) forgetServer(server weak.Pointer[http.Server]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.servers, server)
}

// endStreamsOf ends the streams of one server.
func (c *clients) endStreamsOf(server *http.Server) {
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
