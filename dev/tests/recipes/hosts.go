package recipes

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/weirhttp"
)

// HostClient returns a client with one gate per host of the URLs.
func HostClient(base http.RoundTripper) *http.Client {
	//readme:perhost
	hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{})
	client := &http.Client{Transport: weirhttp.NewTransport(
		weirhttp.Per(hosts, weirhttp.ByHost), weirhttp.TransportConfig{Base: base},
	)}
	//readme:end
	return client
}

//readme:pool

// A Pool sends calls to the hosts of a service in turn, with one gate per host.
type Pool struct {
	Hosts []string // the addresses behind the name
	Gates *weir.Group[string]
	next  atomic.Uint64
}

// Run makes the call at the next host whose gate allows it.
func (p *Pool) Run(ctx context.Context, call func(ctx context.Context, host string) error) (err error) {
	first := p.next.Add(1)
	for i := range uint64(len(p.Hosts)) {
		host := p.Hosts[(first+i)%uint64(len(p.Hosts))]
		err = p.Gates.Get(host).Run(ctx, func(ctx context.Context) error { return call(ctx, host) })
		if !errors.Is(err, weir.ErrRefused) {
			return err
		}
	}
	return err // all gates have refused
}

//readme:end
