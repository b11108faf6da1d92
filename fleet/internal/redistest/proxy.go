package redistest

import (
	"context"
	"net"
	"sync"
	"time"
)

// Proxy simulates a bad network between clients and a server: a TCP proxy that delays,
// loses and cuts. A new Proxy is transparent. All methods may be called at any time.
type Proxy struct {
	t    TB
	addr string

	mu       sync.Mutex
	listener net.Listener // nil while it refuses
	target   string
	links    map[*link]bool
	delay    time.Duration
	up, down bool // whether data from clients, or from the server, is dropped
	lose     int  // replies still to be lost
}

// link is one connection through the proxy.
type link struct{ client, server net.Conn }

func (l *link) close() {
	// Without lingering, the peer sees a reset, as after a network failure.
	for _, c := range []net.Conn{l.client, l.server} {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
}

// NewProxy returns a proxy for an address, which is closed when the test ends.
func NewProxy(t TB, target string) *Proxy {
	t.Helper()
	p := &Proxy{t: t, target: target, links: map[*link]bool{}, addr: "127.0.0.1:0"}
	t.Cleanup(p.Refuse)
	p.Accept()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addr = p.listener.Addr().String()
	return p
}

// Addr returns the address to connect to.
func (p *Proxy) Addr() string { return p.addr }

// Lead directs new connections to another server, and cuts the existing ones.
func (p *Proxy) Lead(target string) {
	p.set(func() { p.target = target })
	p.Cut()
}

// Delay delays data by d in both directions. 0 ends it.
func (p *Proxy) Delay(d time.Duration) { p.set(func() { p.delay = d }) }

// Swallow loses data from the clients, or from the server, while the
// connections stay open, as in a half-open connection.
func (p *Proxy) Swallow(up, down bool) { p.set(func() { p.up, p.down = up, down }) }

// LoseReplies cuts the connections of the next n replies instead of delivering them: the
// server has executed the command, and the client does not learn of it.
func (p *Proxy) LoseReplies(n int) { p.set(func() { p.lose = n }) }

// Cut cuts all connections. New ones are accepted.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
	clear(p.links)
}

// Refuse cuts all connections and refuses new ones.
func (p *Proxy) Refuse() {
	p.set(func() {
		if p.listener != nil {
			_ = p.listener.Close()
			p.listener = nil
		}
	})
	p.Cut()
}

// Accept ends a Refuse.
func (p *Proxy) Accept() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		return
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", p.addr)
	if err != nil {
		p.t.Fatalf("redistest: the proxy: %v", err)
	}
	p.listener = l
	go p.serve(l)
}

func (p *Proxy) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *Proxy) serve(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		go p.link(listener, client)
	}
}

// link carries one connection until either side or the proxy ends it.
func (p *Proxy) link(listener net.Listener, client net.Conn) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := new(net.Dialer).DialContext(context.Background(), "tcp", target)
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{client, server}
	p.mu.Lock()
	alive := p.listener == listener && p.target == target
	p.links[l] = alive
	p.mu.Unlock()
	if alive {
		go p.copyData(l, server, client, true)
		p.copyData(l, client, server, false)
	}
	l.close()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// copyData copies from one side to the other until the end, or until a reply
// is to be lost.
func (p *Proxy) copyData(l *link, to, from net.Conn, up bool) {
	defer l.close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		swallow, cut, delay := p.dropOrDelay(up)
		if cut {
			return
		}
		if delay > 0 {
			<-time.After(delay)
		}
		if swallow {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// dropOrDelay decides what happens to one piece of data.
func (p *Proxy) dropOrDelay(up bool) (swallow, cut bool, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	swallow = up && p.up || !up && p.down
	cut = !up && !swallow && p.lose > 0
	if cut {
		p.lose--
	}
	return swallow, cut, p.delay
}
