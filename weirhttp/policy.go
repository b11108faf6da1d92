package weirhttp

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/weir-go/weir/limiter"
)

// By says which requests have a quota of their own. What is joined by | is told apart together:
// ByIP|ByRoute is a quota for each address on each route. The zero By is one quota for all requests.
type By uint8

// What requests are told apart by.
const (
	ByIP     By = 1 << iota // the address of the client, an IPv6 one by its /64: see [Proxies]
	ByClient                // who the client says it is, by LimitConfig.Client; the address, where it does not say
	ByRoute                 // the route, by LimitConfig.Route
)

// The bounds of a Policy.
const (
	maxQuota = 1_000_000_000
	minSpan  = time.Millisecond
	maxSpan  = 366 * 24 * time.Hour
	maxName  = 64

	defaultKeys = 100_000 // of a limiter.Group
)

// Policy is one limit: so many requests in a span of time for each of those who have a quota of their own.
// It is a plain value, to be read from a file or changed while requests come.
//
// A quota is a token bucket. Whoever has been quiet can make Burst requests at once and then Limit in each Span,
// spread over it; so there are at most Limit + Burst requests in any Span.
type Policy struct {
	Name  string        // names it in headers, problems and metrics: up to 64 printable ASCII characters without " and \. Must be given.
	Limit int           // how many requests, or what they cost, in a Span: from 1 to 1,000,000,000. Must be given.
	Span  time.Duration // from 1 ms to 366 days. Must be given.
	Burst int           // the most at once, from 1 to 1,000,000,000. Default: Limit.
	By    By            // who has a quota of their own. Default: all requests share one.

	Only   []Match // the requests that it is for: what any of these selects. Default: all.
	Except []Match // the requests that it is not for: what any of these selects. Default: none.
	Shadow bool    // whether it refuses nothing and only counts what it would have refused. Default: it refuses.

	MaxKeys int // the most quotas that are remembered, as GroupConfig.MaxKeys of limiter. Default: 100,000, or 1 where all requests share one.
	// Overflow is what becomes of a new key when all MaxKeys quotas are in use. Default: a quota in use is never
	// forgotten. New keys share one quota per network of the client, an IPv4 /24 or an IPv6 /32, so a flood of keys from
	// one network refuses new keys of that network only. Up to MaxKeys/4 networks are remembered; requests from further
	// networks are refused.
	Overflow limiter.Overflow
}

// Match selects requests by what they have in common. Of the fields that are given, all must hold, and at least one must be
// given. Clients and routes may be of any length, and are compared whole.
type Match struct {
	Networks []netip.Prefix // the client's address lies in one of these
	Clients  []string       // the client says that it is one of these, by LimitConfig.Client
	Routes   []string       // the route is one of these, by LimitConfig.Route
}

// Validate returns nil for a policy that makes sense, and otherwise an error that names all faults.
func (p Policy) Validate() error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("weirhttp: policy %q: "+format, append([]any{p.Name}, args...)...))
	}
	if p.Name == "" || len(p.Name) > maxName || strings.ContainsFunc(p.Name, unquotable) {
		fault("Name has %d bytes, must be 1 to %d printable ASCII characters without \" and \\", len(p.Name), maxName)
	}
	if p.Limit < 1 || p.Limit > maxQuota {
		fault("Limit is %d, must lie between 1 and %d", p.Limit, maxQuota)
	}
	if p.Span < minSpan || p.Span > maxSpan {
		fault("Span is %v, must lie between %v and %v", p.Span, minSpan, maxSpan)
	}
	if p.Burst < 0 || p.Burst > maxQuota {
		fault("Burst is %d, must lie between 1 and %d (or 0 for the default)", p.Burst, maxQuota)
	}
	if p.By > ByIP|ByClient|ByRoute {
		fault("By is %d, must be joined of ByIP, ByClient and ByRoute", p.By)
	}
	for _, err := range validateMatches("Only", p.Only) {
		fault("%w", err)
	}
	for _, err := range validateMatches("Except", p.Except) {
		fault("%w", err)
	}
	if len(faults) == 0 {
		if err := p.group().Validate(); err != nil {
			fault("%w", err)
		}
	}
	return errors.Join(faults...)
}

// unquotable reports whether a character cannot stand as it is in a string of a structured field.
func unquotable(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }

func validateMatches(field string, matches []Match) (faults []error) {
	for i, m := range matches {
		if len(m.Networks)+len(m.Clients)+len(m.Routes) == 0 {
			faults = append(faults, fmt.Errorf("%s[%d] selects by nothing, must name networks, clients or routes", field, i))
		}
		for _, n := range m.Networks {
			if err := validateNetwork(n); err != nil {
				faults = append(faults, fmt.Errorf("%s[%d]: Networks: %w", field, i, err))
			}
		}
	}
	return faults
}

// needsClient reports whether the policy must be told who the client is.
func (p Policy) needsClient() bool {
	return p.By&ByClient != 0 || namesClients(p.Only) || namesClients(p.Except)
}

func namesClients(matches []Match) bool {
	for _, m := range matches {
		if len(m.Clients) > 0 {
			return true
		}
	}
	return false
}

func (p Policy) burst() int {
	if p.Burst == 0 {
		return p.Limit
	}
	return p.Burst
}

func (p Policy) tier() limiter.Tier {
	return limiter.Tier{Rate: limiter.Per(float64(p.Limit), p.Span), Burst: p.burst()}
}

func (p Policy) group() limiter.GroupConfig[quotaKey] {
	c := limiter.GroupConfig[quotaKey]{Rate: p.tier().Rate, Burst: p.burst(), MaxKeys: p.MaxKeys, Overflow: p.Overflow}
	if p.By == 0 && c.MaxKeys == 0 {
		c.MaxKeys = 1
	}
	return c
}

// sameKeys reports whether the quotas of one policy can go on in another.
func (p Policy) sameKeys(q Policy) bool {
	return p.By == q.By && p.MaxKeys == q.MaxKeys && p.Overflow == q.Overflow
}

// selection is a list of Match made ready.
type selection []matcher

type matcher struct {
	networks        []netip.Prefix
	clients, routes map[string]bool
}

func newSelection(matches []Match) selection {
	s := make(selection, len(matches))
	for i, m := range matches {
		s[i] = matcher{networks: append([]netip.Prefix(nil), m.Networks...), clients: setOf(m.Clients), routes: setOf(m.Routes)}
		for _, c := range m.Clients {
			s[i].clients[bounded(c)] = true // the form that FromHeader returns
		}
	}
	return s
}

func setOf(words []string) map[string]bool {
	set := make(map[string]bool, len(words))
	for _, w := range words {
		set[w] = true
	}
	return set
}

func (s selection) has(who *sender) bool {
	for i := range s {
		if s[i].has(who) {
			return true
		}
	}
	return false
}

func (m *matcher) has(who *sender) bool {
	return (len(m.networks) == 0 || inside(m.networks, who.addr)) &&
		(len(m.clients) == 0 || m.clients[who.client]) &&
		(len(m.routes) == 0 || m.routes[who.route])
}
