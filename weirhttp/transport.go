package weirhttp

import (
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/stat"
)

// Transport is an [http.RoundTripper] that sends each request through a gate. It is made
// by NewTransport; its fields are set, if at all, before it is first used. After that all
// methods may be called from any number of goroutines.
//
// A call is judged when its response's headers are there, so that a long download or a
// stream holds no place of a probe. No verdict is made on a call that the caller cancelled,
// whose body the caller could not provide, or which holds what HTTP cannot say. A base that
// panics has failed. A caller cancels by its context; the Timeout of an http.Client is a
// deadline, and so a failure, and the Cancel of a Request, long deprecated, is not looked at.
//
// A response of status 429 or 503 that says when to come back (see [RetryAfter]) is obeyed
// by the gate, whatever its config is: it refuses requests until then, up to MaxRetryAfter
// ([weir.Gate.Hold]). A breaker that opens stays open at least as long, up to a MaxRetryAfter
// of its own.
type Transport struct {
	// Classify says what a response, or the error in its place, tells about the service.
	// It leaves the body alone. If it panics nothing is told, and the panic goes on up.
	// Default DefaultClassify, but that an error is judged by the Classify of the gate's
	// breaker.
	Classify func(*http.Response, error) breaker.Outcome

	// Fallback answers a request that was refused for the reason given, in the place of
	// the service: with a response of its own making, or with what another RoundTripper
	// returns. Unless it reads the request's body, or hands it on, it need not close it.
	// Default none: the refusal is the answer.
	Fallback func(*http.Request, error) (*http.Response, error)

	// OnRefusal is told of each request that was refused, in its goroutine and before
	// Fallback is asked: see [LogRefusedCalls]. It leaves the request as it is. Default none.
	OnRefusal func(*http.Request, *RefusedError)

	// MaxRetryAfter is the longest time for which a server can have the gate held. With Off
	// no server can. Default 1 min.
	MaxRetryAfter time.Duration

	// CountBodyFailures books each body that fails while it is read (see TransportStats) as one
	// more call that failed, beside the one that its headers were. Default false.
	CountBodyFailures bool

	base         http.RoundTripper
	gates        *Gates
	bodyFailures atomic.Int64
}

// Off turns Transport.MaxRetryAfter off.
const Off = -1

const defaultMaxRetryAfter = time.Minute

// NewTransport returns a transport that sends what the gates let through by base, or by
// [http.DefaultTransport] if base is nil:
//
//	web := &http.Client{Transport: weirhttp.NewTransport(nil, weirhttp.PerHost("web", weir.Config{}))}
//
// It panics if per is nil.
func NewTransport(base http.RoundTripper, per *Gates) *Transport {
	if per == nil {
		panic("weirhttp: NewTransport needs Gates")
	}
	if base == nil {
		base = http.DefaultTransport
	}
	return &Transport{base: base, gates: per}
}

// RoundTrip sends the request by the base, if its gate lets it through; where the gate has
// a limiter and a MaxWait, it waits for its turn. Otherwise it returns a [*RefusedError],
// or the error of the context that ended meanwhile, or what Fallback does.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	gate := t.gates.gate(req)
	if gate == nil {
		return t.base.RoundTrip(req)
	}
	permit, err := gate.Allow(req.Context())
	if err != nil {
		return t.refuse(req, err)
	}
	return t.send(req, gate, &permit)
}

// send sends the request and judges what comes of it.
func (t *Transport) send(req *http.Request, gate *weir.Gate, permit *breaker.Permit) (*http.Response, error) {
	outcome := breaker.Failure // stands if the base does not return
	defer func() { permit.Record(outcome) }()
	sent, up := watchUpload(req)
	resp, err := t.base.RoundTrip(sent)
	outcome = breaker.Ignored // stands if Classify does not return
	if err != nil && (gaveUp(req.Context()) || up.hasFailed() || !sendable(req)) {
		return resp, err
	}
	outcome = t.verdict(req, gate, resp, err)
	if resp == nil || err != nil {
		return resp, err
	}
	if up != nil {
		resp.Request = req
	}
	if wait := RetryAfter(resp); wait > 0 {
		permit.SetRetryAfter(wait)
		t.hold(gate, wait)
	}
	t.watchBody(req, resp, gate)
	return resp, nil
}

func (t *Transport) verdict(req *http.Request, gate *weir.Gate, resp *http.Response, err error) breaker.Outcome {
	switch {
	case t.Classify != nil:
		return t.Classify(resp, err)
	case err != nil:
		return gate.Breaker().Outcome(req.Context(), err)
	}
	return verdictOn(resp)
}

func (t *Transport) hold(gate *weir.Gate, wait time.Duration) {
	longest := t.MaxRetryAfter
	if longest == 0 {
		longest = defaultMaxRetryAfter
	}
	if longest > 0 {
		gate.Hold(min(wait, longest))
	}
}

// refuse answers a request that did not pass its gate.
func (t *Transport) refuse(req *http.Request, err error) (*http.Response, error) {
	if !errors.Is(err, weir.ErrRefused) {
		closeBody(req)
		return nil, err
	}
	refused := &RefusedError{Host: Host(req), Err: err}
	if t.OnRefusal != nil {
		t.OnRefusal(req, refused)
	}
	if t.Fallback == nil {
		closeBody(req)
		return nil, refused
	}
	return t.fallBack(req, refused)
}

// TransportStats are what a transport has been through beside what its gates count.
type TransportStats struct {
	// BodyFailures are the responses, judged by their headers before, whose bodies
	// failed while they were read, and not because the caller closed or cancelled them.
	BodyFailures int64
}

// Stats returns what the transport has been through so far.
func (t *Transport) Stats() TransportStats {
	return TransportStats{BodyFailures: t.bodyFailures.Load()}
}

// Observe yields the figures of the gates: a transport is a [stat.Source]. Export either
// the transport or what its Gates are made of, not both.
func (t *Transport) Observe(yield func(*stat.Series, float64)) { t.gates.Observe(yield) }

// Histograms yields the distributions of the gates.
func (t *Transport) Histograms(yield func(*stat.Series, stat.Histogram)) { t.gates.Histograms(yield) }

// CloseIdleConnections closes those of the base, if it knows how to. An http.Client's
// method of that name calls it.
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}
