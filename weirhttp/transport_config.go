package weirhttp

import (
	"net/http"
	"time"

	"github.com/weir-go/weir/breaker"
)

// TransportConfig configures a [Transport]. The zero value is valid.
type TransportConfig struct {
	// Base sends the requests that the gates allow. Default [http.DefaultTransport].
	Base http.RoundTripper

	// Classify returns the outcome of a call, given its response or the error in its place. It must
	// not read the body. If Classify panics, no outcome is recorded and the panic propagates. Default
	// DefaultClassify, except that the Classify of the gate's breaker judges errors.
	Classify func(*http.Response, error) breaker.Outcome

	// Fallback answers a refused request in the place of the service, given the refusal: with a
	// response of its own, or with that of another RoundTripper. It need not close the request's body
	// unless it reads it or passes it on. Default none: the refusal is returned.
	Fallback func(*http.Request, error) (*http.Response, error)

	// OnRefusal is called for each refused request, in its goroutine and before Fallback: see
	// [LogRefusedCalls]. It must not change the request. Default none.
	OnRefusal func(*http.Request, *RefusedError)

	// MaxRetryAfter is the longest time for which a server can ask not to be called, by a status 429 or
	// 503 with Retry-After, or with RateLimit, RateLimit-Reset or X-RateLimit-Reset where nothing
	// remains. If it is negative, what servers ask for is ignored. Default 1 min.
	MaxRetryAfter time.Duration

	// CountBodyFailures records one more failed call for each body that fails while it is read, in
	// addition to the call that its headers were judged as. Default false.
	CountBodyFailures bool
}
