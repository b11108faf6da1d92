package weirhttp

import (
	"net/http"
	"time"

	"github.com/weir-go/weir/breaker"
)

// TransportConfig configures a [Transport]. Every value is valid.
type TransportConfig struct {
	// Base sends the requests that the gates allow. Default [http.DefaultTransport].
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
	// 429 or 503. If it is negative, the gate ignores such waits. Default 1min.
	MaxRetryAfter time.Duration

	// CountBodyFailures records one more failed call for each response body that fails while it is
	// read, in addition to the outcome that is known from the headers. Default false.
	CountBodyFailures bool
}
