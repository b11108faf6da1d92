package weirhttp

import (
	"errors"
	"net/http"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

// Transport is an [http.RoundTripper] that sends each request through a gate. It is made by
// NewTransport. All methods are safe for concurrent use.
//
// A call is judged when the headers of its response arrive, so a long download or a stream does not
// occupy a probe slot. A call counts neither as a success nor as a failure if the caller cancelled it,
// if its body could not be read, or if HTTP cannot express it. A base that panics counts as a failure.
// A caller cancels by the context of the request. The Timeout of an http.Client is a deadline, and so
// a failure. The deprecated Cancel field of a request is ignored.
//
// A response of status 429 or 503 may say how long not to call again: in Retry-After, RateLimit or
// RateLimit-Reset. The gate obeys that, whatever its config is: it refuses requests for that time, up
// to MaxRetryAfter ([weir.Gate.Hold]). A breaker that opens stays open at least as long, up to a
// MaxRetryAfter of its own.
type Transport struct {
	config TransportConfig
	gate   func(*http.Request) *weir.Gate
}

// NewTransport returns a transport that sends each request through the gate that the gate function
// returns: see [Per] and [One]. If that is nil, the request is sent without a gate. NewTransport panics
// if gate is nil.
func NewTransport(gate func(*http.Request) *weir.Gate, c TransportConfig) *Transport {
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

// RoundTrip sends the request by the base, if its gate lets it through; where the gate has
// a limiter and a MaxWait, it waits for its turn. Otherwise it returns a [*RefusedError],
// or the error of the context that ended meanwhile, or what Fallback does.
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

// send sends the request and judges what comes of it.
func (t *Transport) send(req *http.Request, gate *weir.Gate, permit *breaker.Permit) (*http.Response, error) {
	outcome := breaker.Failure // stands if the base does not return
	defer func() { permit.Record(outcome) }()
	sent, up := watchUpload(req)
	resp, err := t.config.Base.RoundTrip(sent)
	outcome = breaker.Ignored // stands if Classify does not return
	if err != nil && (gaveUp(req.Context()) || up.hasFailed() || !sendable(req)) {
		return resp, err
	}
	if err != nil && t.config.Classify == nil {
		permit.Done(req.Context(), err)
		return resp, err
	}
	outcome = t.verdict(resp, err)
	if resp == nil || err != nil {
		return resp, err
	}
	if up != nil {
		resp.Request = req
	}
	if wait := retryAfter(resp); wait > 0 {
		permit.SetRetryAfter(wait)
		t.hold(gate, wait)
	}
	if t.config.CountBodyFailures {
		watchBody(req, resp, gate)
	}
	return resp, nil
}

func (t *Transport) verdict(resp *http.Response, err error) breaker.Outcome {
	if t.config.Classify != nil {
		return t.config.Classify(resp, err)
	}
	return verdictOn(resp)
}

func (t *Transport) hold(gate *weir.Gate, wait time.Duration) {
	gate.Hold(min(wait, t.config.MaxRetryAfter))
}

// refuse answers a request that did not pass its gate.
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

// CloseIdleConnections closes those of the base, if it knows how to. An http.Client's
// method of that name calls it.
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.config.Base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}
