package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/weirhttp"
)

// loadServer is a server on loopback and a client that calls it.
type loadServer struct {
	name   string
	url    string
	server *http.Server
	base   *http.Transport
	client *http.Client
	open   atomic.Int64   // connections of the server
	inUse  []func() int64 // slots and permits
}

// manyCalls is a bound on calls in flight that no run reaches. It counts them.
const manyCalls = 1e6

// The limit in the runs of measure.
const (
	rate  = 300
	burst = 300
)

func sayHello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello, world") }

// newLoadServer starts a server with the handler, and returns it with a client whose transport
// guard wraps.
func (c config) newLoadServer(name string, h http.Handler, guard func(http.RoundTripper) http.RoundTripper) *loadServer {
	var protocols http.Protocols
	protocols.SetHTTP1(!c.http2)
	protocols.SetUnencryptedHTTP2(c.http2)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	r := &loadServer{name: name, url: "http://" + listener.Addr().String() + "/"}
	r.server = &http.Server{Handler: h, Protocols: &protocols, ReadHeaderTimeout: time.Minute, ConnState: r.count}
	r.base = &http.Transport{Protocols: &protocols, MaxIdleConnsPerHost: c.workers}
	r.client = &http.Client{Transport: guard(r.base)}
	go func() { _ = r.server.Serve(listener) }()
	return r
}

func (r *loadServer) count(_ net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew:
		r.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		r.open.Add(-1)
	default:
	}
}

func unguardedTransport(base http.RoundTripper) http.RoundTripper { return base }

func (c config) bareServer(name string) *loadServer {
	return c.newLoadServer(name, http.HandlerFunc(sayHello), unguardedTransport)
}

// guardedServer uses all three kinds of middleware, and two policies that never refuse.
func (c config) guardedServer(name string) *loadServer {
	flight := inflight.New(inflight.Config{Limit: 1000, Name: "server"})
	gate := weir.New("handler", weir.Config{MaxConcurrent: manyCalls})
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{
		{Name: "second", Rate: limiter.Per(1e6, time.Second), Burst: 1e6, By: weirhttp.ByIP}, {Name: "day", Rate: limiter.Per(1e9, 24*time.Hour), Burst: 1e9, By: weirhttp.ByIP},
	}})
	shed := weirhttp.Shed(flight, weirhttp.ShedConfig{})
	r := c.newLoadServer(name, shed(limit.Handler(weirhttp.Guard(weirhttp.ForAll(gate), weirhttp.GuardConfig{})(http.HandlerFunc(sayHello)))), unguardedTransport)
	r.inUse = append(r.inUse, func() int64 { return int64(flight.InFlight()) }, func() int64 { return metricOf(gate, "weir.inflight.call.active") })
	return r
}

func (c config) limitedServer(name string) *loadServer {
	flight := inflight.New(inflight.Config{Limit: 1000, Name: "server"})
	limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{
		{Name: "second", Rate: limiter.Per(float64(rate), time.Second), Burst: burst, By: weirhttp.ByIP},
	}})
	r := c.newLoadServer(name, weirhttp.Shed(flight, weirhttp.ShedConfig{})(limit.Handler(http.HandlerFunc(sayHello))), unguardedTransport)
	r.inUse = append(r.inUse, func() int64 { return int64(flight.InFlight()) })
	return r
}

func (c config) guardedClient(name string) *loadServer {
	return c.newGatedServer(name, weir.Config{Rate: limiter.PerSecond(1e6), Burst: 1e6})
}

func (c config) limitedClient(name string) *loadServer {
	return c.newGatedServer(name, weir.Config{Rate: limiter.PerSecond(rate), Burst: burst})
}

func (c config) newGatedServer(name string, gate weir.Config) *loadServer {
	gate.MaxConcurrent = manyCalls
	group := weir.NewGroup[string](name, weir.GroupConfig{Gate: gate})
	r := c.newLoadServer(name, http.HandlerFunc(sayHello), func(base http.RoundTripper) http.RoundTripper {
		return weirhttp.NewTransport(weirhttp.Per(group, weirhttp.ByHost), weirhttp.TransportConfig{Base: base})
	})
	host := r.url[len("http://") : len(r.url)-1]
	r.inUse = append(r.inUse, func() int64 { return metricOf(group.Get(host), "weir.inflight.call.active") })
	return r
}

// close closes all connections. It returns an error if any connection or permit is left.
func (r *loadServer) close() error {
	r.base.CloseIdleConnections()
	err := r.server.Close()
	var faults []error
	for wait := time.Millisecond; r.open.Load() != 0 && wait < time.Second; wait *= 2 {
		<-time.After(wait) // until the goroutines of the server have noticed
	}
	if n := r.open.Load(); n != 0 {
		faults = append(faults, fmt.Errorf("%s: %d connections left", r.name, n))
	}
	for _, inUse := range r.inUse {
		if n := inUse(); n != 0 {
			faults = append(faults, fmt.Errorf("%s: %d permits left", r.name, n))
		}
	}
	return errors.Join(append(faults, err)...)
}

// metricOf returns the value of a metric of b.
func metricOf(source stat.Source, name string) (n int64) {
	for s, v := range source.Observe {
		if s.Instrument.Name == name {
			n = int64(v)
		}
	}
	return n
}
