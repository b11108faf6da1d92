package weirhttp

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

// body is a response's body that notices when it fails.
type body struct {
	io.ReadCloser
	ctx       context.Context
	transport *Transport
	gate      *weir.Gate
	over      atomic.Bool // closed, or known to have failed
}

// watchBody puts a body around that of the response. One that can be written to is the
// connection of a protocol upgrade, and the caller's own affair: it stays as it is, with
// whatever else it can do.
func (t *Transport) watchBody(req *http.Request, resp *http.Response, gate *weir.Gate) {
	if _, writable := resp.Body.(io.Writer); writable || resp.Body == nil || resp.Body == http.NoBody {
		return
	}
	resp.Body = &body{ReadCloser: resp.Body, ctx: req.Context(), transport: t, gate: gate}
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && !gaveUp(b.ctx) && !b.over.Swap(true) {
		b.transport.bodyFailed(b.gate)
	}
	return n, err
}

func (b *body) Close() error {
	b.over.Store(true)
	return b.ReadCloser.Close()
}

// bodyFailed counts a body that failed. The call itself has been judged by its headers,
// and its permit is used up: the failure is a call of its own. It is not booked while the
// breaker is half-open, for a probe is judged by its headers as well.
func (t *Transport) bodyFailed(gate *weir.Gate) {
	t.bodyFailures.Add(1)
	b := gate.Breaker()
	if s := b.State(); !t.config.CountBodyFailures || s == breaker.Open || s == breaker.HalfOpen || s == breaker.ForcedOpen {
		return
	}
	if permit, err := b.Allow(); err == nil {
		permit.Record(breaker.Failure)
	}
}
