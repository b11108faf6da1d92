package weirhttp

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/weir-go/weir/breaker"
)

// TransportConfig configures a [Transport]. The zero value is valid.
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
	// 429 or 503. The gate refuses requests for that time and up to a tenth longer: see
	// weir.Gate.Hold. breaker.Off ignores such waits. Default 1min.
	MaxRetryAfter time.Duration

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
