package weirhttp

import (
	"errors"
	"net/http"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

// Transport is an [http.RoundTripper] that sends each request through a gate. NewTransport makes
// it. All methods are safe for concurrent use.
//
// The outcome of a call is known when the headers of its response arrive, so a long download or a
// stream occupies neither a probe slot nor a slot of weir.Config.MaxConcurrent or Adaptive.
// Adaptive learns from the time until the headers arrive. A call is ignored if its caller cancelled
// it, if the body of its request could not be read, or if HTTP cannot express the request. A caller
// cancels with the context of the request. The Timeout of an http.Client is a deadline, so a call
// that exceeds it is a failure. The deprecated Cancel field of a request is not supported. If the
// base panics, the call is a failure.
//
// A response with status 429 or 503 may say in Retry-After, RateLimit or RateLimit-Reset how long
// clients should wait. The gate then refuses requests for that time, up to MaxRetryAfter: see
// [weir.Gate.Hold]. A breaker that opens stays open at least as long, up to its own MaxRetryAfter.
// The zero value does not work: use NewTransport.
type Transport struct {
	config TransportConfig
	gate   func(*http.Request) *weir.Gate
}

// NewTransport returns a transport that sends each request through the gate that the gate function
// returns: see [Per] and [One]. If the function returns nil, the request is sent without a gate.
// NewTransport panics with the error of c.Validate if c is invalid, and if gate is nil.
func NewTransport(gate func(*http.Request) *weir.Gate, c TransportConfig) *Transport {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if gate == nil {
		panic(errors.New("weirhttp: NewTransport needs a gate function"))
	}
	if c.Base == nil {
		c.Base = http.DefaultTransport
	}
	if c.MaxRetryAfter == 0 {
		c.MaxRetryAfter = time.Minute
	}
	return &Transport{config: c, gate: gate}
}

// RoundTrip sends the request if its gate allows it. It waits for a token for up to
// weir.Config.MaxWait. If the gate refuses the request, RoundTrip returns a [*RefusedError] or what
// Fallback returns. If the context of the request is done before it is sent, RoundTrip returns the
// error of the context.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	gate := t.gate(req)
	if gate == nil {
		return t.config.Base.RoundTrip(req)
	}
	permit, err := gate.Allow(req.Context())
	if err != nil {
		return t.refuse(req, err)
	}
	return t.send(req, gate, &permit)
}

// send sends the request and records the outcome.
func (t *Transport) send(req *http.Request, gate *weir.Gate, permit *breaker.Permit) (*http.Response, error) {
	outcome := breaker.Failure // recorded if the base panics
	var failed error           // the text that the breaker shows for a failure
	defer func() { permit.DoneAs(req.Context(), failed, outcome) }()
	sent, body := watchRequestBody(req)
	resp, err := t.config.Base.RoundTrip(sent)
	outcome = breaker.Ignored // recorded if Classify panics
	if err != nil && (cancelled(req.Context()) || body.unreadable() || !sendable(req)) {
		return resp, err
	}
	if err != nil && t.config.Classify == nil {
		permit.Done(req.Context(), err) // the breaker's Classify decides
		return resp, err
	}
	failed = err
	outcome = t.classify(resp, err)
	if resp == nil || err != nil {
		return resp, err
	}
	if outcome.Failed() {
		failed = statusError(resp.StatusCode)
	}
	if body != nil {
		resp.Request = req
	}
	if wait := retryAfter(resp); wait > 0 {
		permit.SetRetryAfter(wait)
		gate.Hold(min(wait, t.config.MaxRetryAfter))
	}
	if t.config.CountBodyFailures {
		watchBody(req, resp, gate)
	}
	return resp, nil
}

func (t *Transport) classify(resp *http.Response, err error) breaker.Outcome {
	if t.config.Classify != nil {
		return t.config.Classify(resp, err)
	}
	return classifyResponse(resp)
}

// refuse returns the result for a request that its gate did not allow. If err is not a refusal, it
// is the error of the context or of a remote limit.
func (t *Transport) refuse(req *http.Request, err error) (*http.Response, error) {
	if !errors.Is(err, weir.ErrRefused) {
		closeBody(req)
		return nil, err
	}
	refused := &RefusedError{Host: ByHost(req), Err: err}
	if t.config.OnRefusal != nil {
		t.config.OnRefusal(req, refused)
	}
	if t.config.Fallback == nil {
		closeBody(req)
		return nil, refused
	}
	return t.fallBack(req, refused)
}

// CloseIdleConnections closes the idle connections of the base if the base has such a method.
// http.Client.CloseIdleConnections calls this method.
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.config.Base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}
