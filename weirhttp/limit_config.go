package weirhttp

import (
	"errors"
	"fmt"
	"net/http"
)

// LimitConfig says how a [Limit] limits. It holds values and functions, and may be shared.
type LimitConfig struct {
	Policies []Policy // what is limited. They hold together: a request is let through by all that are for it, or counted by none. Default: nothing is.
	Exempt   []Match  // requests that no policy sees: what any of these selects. Default: none.
	Proxies  Proxies  // whom to believe about where a request comes from. Default: nobody but the peer.

	// Client says who makes a request, "" where it is not known: FromHeader("X-Api-Key"), say. Anybody can make up
	// names, and has a new quota with each, unless they are checked before: put a policy by IP beside one by client.
	// Default: nobody does, and no policy may be by client.
	Client func(*http.Request) string
	// Route says where a request goes. Default: http.Request.Pattern, which is known behind a ServeMux. Before one,
	// use RouteOf; for other routers see the package's documentation. If policies or matches use
	// routes, the first request with an empty Pattern is logged to slog.Default as an error.
	Route func(*http.Request) string
	// Cost is what a request takes from each quota. One of 0 is free; one that is negative, or above a policy's Burst, is
	// never let through. Default: 1.
	Cost func(*http.Request) int

	CountRefused bool // whether a request that some policies refuse is still counted by the others, so that who keeps asking uses up the long-term quotas as well. Default: it is not.
	Legacy       bool // whether responses have X-RateLimit-Limit, -Remaining and -Reset as well, of the policy that has the least left. Reset is the seconds until its quota is full again, also on a refusal. Default: no.
	Quiet        bool // whether responses lack RateLimit-Policy and RateLimit. Default: they have them.

	// OnRefusal is told of each refusal, in the goroutine of the request: see LogRefusedRequests. Default: none.
	OnRefusal func(*http.Request, Refusal)
	// Answer answers a refused request; the headers of above are set. Default: Refusal.WriteProblem.
	Answer func(http.ResponseWriter, *http.Request, Refusal)
}

// Validate returns nil for a configuration that makes sense, and otherwise an error that names all faults.
func (c LimitConfig) Validate() error {
	faults := []error{c.Proxies.Validate()}
	names, needsClient := map[string]bool{}, namesClients(c.Exempt)
	for _, p := range c.Policies {
		faults = append(faults, p.Validate())
		if names[p.Name] {
			faults = append(faults, fmt.Errorf("weirhttp: policy %q: Name is given to two policies, must be of one", p.Name))
		}
		names[p.Name] = true
		needsClient = needsClient || p.needsClient()
	}
	for _, err := range validateMatches("Exempt", c.Exempt) {
		faults = append(faults, fmt.Errorf("weirhttp: %w", err))
	}
	if needsClient && c.Client == nil {
		faults = append(faults, errors.New("weirhttp: Client is nil, must say who makes a request where a policy asks for clients"))
	}
	return errors.Join(faults...)
}

// FromHeader is a LimitConfig.Client that returns the value of a header. Use it for the key of a limiter in [LimitBy] as
// well. A value of more than 64 bytes is replaced by its SHA-256, so that strangers cannot fill memory with long keys.
func FromHeader(name string) func(*http.Request) string {
	return func(r *http.Request) string {
		key := r.Header.Get(name)
		if len(key) > maxWord {
			return bounded(key)
		}
		return key
	}
}
