package weirhttp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"sync/atomic"
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
//
// A request with [weir.WithAttempt] tells its number in the header X-Envoy-Attempt-Count, unless it
// has that header. The zero value does not work: use NewTransport.
type Transport struct {
	config TransportConfig
	gate   func(*http.Request) *weir.Gate
}

// NewTransport returns a transport that sends each request through the gate that the gate function
// returns: see [Per] and [ForAll]. If the function returns nil, the request is sent without a gate.
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
func (t *Transport) send(req *http.Request, gate *weir.Gate, permit *weir.Permit) (*http.Response, error) {
	outcome := breaker.Failure // recorded if the base panics
	var failed error           // the text that the breaker shows for a failure
	defer func() { permit.Record(req.Context(), failed, outcome) }()
	sent, body := watchRequestBody(withAttempt(req))
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
	if resp.Request == sent {
		resp.Request = req
	}
	if t.config.ObeyRemaining {
		t.obey(gate, permit, resp.Header)
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

// attemptHeader is the header of Envoy for the number of an attempt, of which the first is 1.
const attemptHeader = "X-Envoy-Attempt-Count"

// withAttempt returns the request with the number of its attempt, if it is a retry or a hedge and
// does not have the number yet.
func withAttempt(req *http.Request) *http.Request {
	n := weir.Attempt(req.Context())
	if n == 0 || req.Header.Get(attemptHeader) != "" {
		return req
	}
	numbered := req.WithContext(req.Context())
	if numbered.Header = req.Header.Clone(); numbered.Header == nil {
		numbered.Header = http.Header{}
	}
	numbered.Header.Set(attemptHeader, strconv.Itoa(n+1))
	return numbered
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

// TransportConfig configures a [Transport]. The zero value is valid.
type TransportConfig struct {
	// Base sends the requests that the gates allow. Default http.DefaultTransport.
	Base http.RoundTripper

	// Classify returns the outcome of a call by its response or its error. It must not read the
	// body. If Classify panics, the call is ignored and the panic propagates. Default
	// DefaultClassify for responses, and the Classify of the gate's breaker for errors.
	Classify func(*http.Response, error) breaker.Outcome

	// Fallback returns the response for a refused request, such as a cached one or that of another
	// RoundTripper. It gets the error of the refusal. It need not close the request's body unless
	// it reads the body or passes it on. Default none: the error is returned.
	Fallback func(*http.Request, error) (*http.Response, error)

	// OnRefusal is called for each refused request, before Fallback: see [LogRefusedCalls]. It must
	// not change the request. Default none.
	OnRefusal func(*http.Request, *RefusedError)

	// MaxRetryAfter is the longest wait that a server can ask for: with Retry-After, or with
	// RateLimit, RateLimit-Reset or X-RateLimit-Reset if nothing remains, in a response with status
	// 429 or 503. The gate refuses requests for that time and up to a tenth longer: see
	// weir.Gate.Hold. breaker.Off ignores such waits. Default 1m.
	MaxRetryAfter time.Duration

	// ObeyRemaining makes the gate send no more requests than the service says are left, before it
	// answers 429: see weir.Gate.SetRemaining. It reads RateLimit and RateLimit-Policy, of draft 10
	// of the IETF, and X-RateLimit-Remaining with its Reset, also with -Requests and -Tokens at the
	// end. Tokens, and a unit other than requests, are what calls cost: see weir.WithCost. A time
	// until the reset above MaxRetryAfter is cut to it. The limit of which the least is left counts
	// for all requests of a gate, so give requests with other limits a gate of their own. Default
	// false.
	ObeyRemaining bool
	// CountBodyFailures records one more failed call for each response body that fails while it is
	// read, in addition to the outcome that is known from the headers. Default false.
	CountBodyFailures bool
}

// Validate returns an error that names all invalid fields, or nil if there are none.
func (c TransportConfig) Validate() error {
	var faults []error
	if base := reflect.ValueOf(c.Base); base.Kind() == reflect.Pointer && base.IsNil() {
		faults = append(faults, fmt.Errorf("weirhttp: Base is a nil %T, must be set or left out", c.Base))
	}
	if c.MaxRetryAfter < breaker.Off {
		faults = append(faults, fmt.Errorf("weirhttp: MaxRetryAfter is %v, must not be negative, or Off", c.MaxRetryAfter))
	}
	return errors.Join(faults...)
}

// fallBack returns the result of Fallback. It closes the request's body afterwards unless Fallback
// used it: another RoundTripper may still read the body, and closes it.
func (t *Transport) fallBack(req *http.Request, err error) (*http.Response, error) {
	if req.Body == nil {
		return t.config.Fallback(req, err)
	}
	body := &trackedBody{ReadCloser: req.Body}
	tracked := req.WithContext(req.Context())
	tracked.Body = body
	defer func() {
		if !body.used.Load() {
			closeBody(req)
		}
	}()
	resp, err := t.config.Fallback(tracked, err)
	if resp != nil && resp.Request == tracked {
		resp.Request = req
	}
	return resp, err
}

// trackedBody is a body that remembers whether it was used.
type trackedBody struct {
	io.ReadCloser
	used atomic.Bool
}

func (b *trackedBody) Read(p []byte) (int, error) {
	b.used.Store(true)
	return b.ReadCloser.Read(p)
}

func (b *trackedBody) Close() error {
	b.used.Store(true)
	return b.ReadCloser.Close()
}

// closeBody closes the body of a request that is not sent, as a RoundTripper must.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
