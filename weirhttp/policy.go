package weirhttp

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/weir-go/weir/limiter"
)

// The bounds of a Policy.
const (
	maxQuota  = 1_000_000_000
	minWindow = time.Millisecond
	maxWindow = 366 * 24 * time.Hour
	maxName   = 64

	defaultKeys = 100_000 // of a limiter.Group
)

// Policy is one quota for each key. It has one of three forms:
//
//   - Rate and Burst: a token bucket. A client that was idle can make Burst requests at once, and then
//     as many as Rate allows. In some windows that is Burst more than Rate says. It takes about 120
//     bytes per key.
//   - Limit and Window: never more than Limit requests in any Window, wherever it begins. If Limit is
//     above 16, a request may count for up to 1/16 of Window longer. It takes 300 to 700 bytes per key.
//   - Remote: a limit outside this process, such as one of package fleet.
type Policy struct {
	// Name stands in headers, problems and metrics: 1 to 64 printable ASCII characters without " and \.
	// Must be given.
	Name string

	// Rate is how fast a quota is replenished. It must be finite.
	Rate limiter.Rate
	// Burst is how many requests a key can make at once, from 1 to 1,000,000,000. Default the requests
	// of one second, at least 1.
	Burst int

	// Limit is how many requests a key can make in any Window, from 1 to 1,000,000,000.
	Limit int
	// Window is a time span from 1 ms to 366 days.
	Window time.Duration

	// Remote returns the limit of a key. It is asked last, and only if all other policies allow the
	// request; if a later one refuses it, what it took is given back if the limit has a method Refund.
	// An error is no decision: it is answered with status 503, and refuses nothing.
	Remote func(key string) limiter.Remote

	// By returns the key of a request, whose quota it uses: ByIP, ByHeader, ByRoute, a Combine of
	// them, a function of your own, or ByNothing for one quota that all requests share. If the key is
	// empty, the address of the client stands in for it. A key of more than 64 bytes is kept as its
	// SHA-256. Must be given.
	By func(*http.Request) string

	// When reports whether the policy applies to a request: to the clients of a plan, say, or to some
	// routes. Default to all requests.
	When func(*http.Request) bool

	// Shadow counts what the policy would refuse, and refuses nothing. Default false. A Remote has a
	// shadow mode of its own, or none.
	Shadow bool

	// MaxKeys is how many keys are remembered. Default 100,000.
	MaxKeys int
	// Overflow says what happens to a new key when all MaxKeys keys are in use. By default a key in use
	// is never forgotten, and new keys share one quota per network of the client, an IPv4 /24 or an
	// IPv6 /32. So a flood of keys from one network refuses new keys of that network only. Up to
	// MaxKeys/4 networks are remembered, and requests from further networks are refused.
	Overflow limiter.Overflow
}

// faults returns what is wrong with the policy.
func (p Policy) faults() (faults []error) {
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("weirhttp: policy %q: "+format, append([]any{p.Name}, args...)...))
	}
	if p.Name == "" || len(p.Name) > maxName || strings.ContainsFunc(p.Name, unquotable) {
		fault("Name has %d bytes, must be 1 to %d printable ASCII characters without \" and \\", len(p.Name), maxName)
	}
	switch bucket, window, remote := p.isBucket(), p.isWindow(), p.Remote != nil; {
	case !bucket && !window && !remote:
		fault("limits nothing, must have Rate, or Limit and Window, or Remote")
	case bucket && window:
		fault("has a Rate or Burst and a Limit or Window, must have one of the two forms")
	case remote && (bucket || window):
		fault("has a Remote and a limit of its own, must have one of them")
	case bucket:
		p.bucketFaults(fault)
	case window:
		p.windowFaults(fault)
	}
	if p.By == nil {
		fault("By is nil, must say who has a quota: ByIP, ByHeader or another key function, or ByNothing for one quota of all")
	}
	if p.MaxKeys < 0 {
		fault("MaxKeys is %d, must be at least 1 (or 0 for the default)", p.MaxKeys)
	}
	switch p.Overflow {
	case "", limiter.RefuseNew, limiter.PassNew, limiter.ShareNew:
	default:
		fault("Overflow is %q, must be RefuseNew, PassNew or ShareNew", p.Overflow)
	}
	if p.Remote != nil && (p.Shadow || p.MaxKeys > 0 || p.Overflow != "") {
		fault("has a Remote, must have neither Shadow nor MaxKeys nor Overflow")
	}
	return faults
}

func (p Policy) bucketFaults(fault func(string, ...any)) {
	if p.Burst < 0 || p.Burst > maxQuota {
		fault("Burst is %d, must lie between 1 and %d (or 0 for the default)", p.Burst, maxQuota)
	}
	switch {
	case p.Rate == limiter.Rate{}:
		fault("Rate is missing, must be given where Burst is")
	case p.Rate == limiter.Unlimited():
		fault("Rate is unlimited, must be finite")
	default:
		if err := p.Rate.Validate(); err != nil {
			fault("%w", err)
		}
	}
}

func (p Policy) windowFaults(fault func(string, ...any)) {
	if p.Limit < 1 || p.Limit > maxQuota {
		fault("Limit is %d, must lie between 1 and %d", p.Limit, maxQuota)
	}
	if p.Window < minWindow || p.Window > maxWindow {
		fault("Window is %v, must lie between %v and %v", p.Window, minWindow, maxWindow)
	}
}

func (p Policy) isBucket() bool { return p.Rate != limiter.Rate{} || p.Burst != 0 }

func (p Policy) isWindow() bool { return p.Limit != 0 || p.Window != 0 }

// requestsIn returns the requests of a policy and the time in which they can be made. It is not for a
// Remote.
func (p Policy) requestsIn() (requests int64, in time.Duration) {
	if p.isWindow() {
		return int64(p.Limit), p.Window
	}
	return p.Rate.Ratio()
}

// interval returns the nanoseconds per request. It is not for a Remote.
func (p Policy) interval() float64 {
	n, in := p.requestsIn()
	return float64(in) / float64(n)
}

// maxKeys returns MaxKeys or its default.
func (p Policy) maxKeys() int {
	if p.MaxKeys == 0 {
		return defaultKeys
	}
	return p.MaxKeys
}

// keepsKeysIn reports whether the keys of the policy stay in use if q replaces it.
func (p Policy) keepsKeysIn(q Policy) bool {
	return p.Name == q.Name && p.Window == q.Window && p.isBucket() == q.isBucket() &&
		p.maxKeys() == q.maxKeys() && p.overflow() == q.overflow()
}

// unquotable reports whether a character cannot stand as it is in a string of a structured field.
func unquotable(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }

// validate returns an error that names all faults of the policies.
func validatePolicies(policies []Policy) error {
	var faults []error
	names := map[string]bool{}
	for _, p := range policies {
		faults = append(faults, p.faults()...)
		if names[p.Name] {
			faults = append(faults, fmt.Errorf("weirhttp: policy %q: Name is given to two policies, must be of one", p.Name))
		}
		names[p.Name] = true
	}
	return errors.Join(faults...)
}

// overflow returns Overflow or its default.
func (p Policy) overflow() limiter.Overflow { return cmp.Or(p.Overflow, limiter.RefuseNew) }
