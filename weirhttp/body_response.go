package weirhttp

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

// watchedBody is the body of a response whose failures are recorded with a breaker.
type watchedBody struct {
	io.ReadCloser
	ctx     context.Context
	breaker *breaker.Breaker
	done    atomic.Bool // it was closed, or its failure was recorded
}

// watchBody replaces the body of the response with a watched one. It does not replace a body that
// can be written to. Such a body is the connection of a protocol upgrade: it belongs to the caller
// and keeps its other methods.
func watchBody(req *http.Request, resp *http.Response, gate *weir.Gate) {
	if _, writable := resp.Body.(io.Writer); writable || resp.Body == nil || resp.Body == http.NoBody {
		return
	}
	resp.Body = &watchedBody{ReadCloser: resp.Body, ctx: req.Context(), breaker: gate.Breaker()}
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && !cancelled(b.ctx) && !b.done.Swap(true) {
		b.recordFailure()
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.done.Store(true)
	return b.ReadCloser.Close()
}

// recordFailure records a call that failed. The permit of the request is used up, because the
// outcome of the call was recorded when its headers arrived. So recordFailure acquires another
// permit. It records nothing while the breaker is half-open, because only headers decide about
// probes. It also records nothing while the breaker is recovering, because the breaker then gives
// permits only for a share of the calls.
func (b *watchedBody) recordFailure() {
	switch b.breaker.State() {
	case breaker.Open, breaker.HalfOpen, breaker.Recovering, breaker.ForcedOpen:
		return
	default:
	}
	if permit, err := b.breaker.Allow(); err == nil {
		permit.Record(breaker.Failure)
	}
}
