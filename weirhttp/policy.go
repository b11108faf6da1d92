package weirhttp

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/weir-go/weir/internal/friend"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/limiter/quota"
)

// The bounds of a Policy.
const (
	maxQuota  = 1_000_000_000
	minWindow = time.Millisecond
	maxWindow = 366 * 24 * time.Hour
	maxName   = 64

	defaultKeys = 100_000 // that of a limiter.Group
)

// Policy is a quota that each key has. It has one of four forms:
//
//   - Rate and Burst are a token bucket. After an idle time a client can make Burst requests at
//     once, and then as many as Rate allows. So in some windows a client makes Burst more requests
//     than Rate says. A key takes about 120 bytes.
//   - Limit and Window allow at most Limit requests in any Window, wherever it begins. If Limit is
//     above 16, requests can count for up to 1/16 of Window longer. Each key takes 300 to 700
//     bytes.
//   - Quota allows so many requests per day, week or month of a time zone, and can be kept in a
//     file.
//   - Remote is a limit outside this process, such as one of package fleet.
type Policy struct {
	// Name is the name in headers, problems and metrics: 1 to 64 printable ASCII characters without
	// " and \, and unique among the policies of all limits, gates and limiters. Required.
	Name string

	// Unit is what the quota counts, if that is not requests: the parameter qu of RateLimit-Policy,
	// such as content-bytes or a unit of your own. LimitConfig.Cost and Limit.Charge count in it.
	// It has the form of a Name. Default requests, which the header does not tell.
	Unit string

	// Rate is the rate at which a quota is refilled. It must be finite.
	Rate limiter.Rate
	// Burst is how many requests a key can make at once, from 1 to 1,000,000,000. Default the
	// requests of one second at Rate, at least 1.
	Burst int

	// Limit is how many requests a key can make in any Window, from 1 to 1,000,000,000.
	Limit int
	// Window is the time span of Limit, from 1ms to 366 days.
	Window time.Duration

	// Quota is a quota per day, week or month. Several policies and other code can share it: the
	// key of a request in it is the one that By returns. Its Config has its Shadow, ShowKeys and
	// MaxKeys. While it has no room, new keys are refused. Its metrics are its own, and need a Name
	// in its Config.
	Quota *quota.Group

	// Remote returns the limit of a key. The limit is called last, if all other policies allow the
	// request. If another Remote then refuses the request, the tokens of this limit are given back
	// if it has a method Reserve. If the limit returns an error, the response has status 503, and
	// the request does not count as refused.
	Remote func(key string) limiter.Remote

	// By returns the key of a request: ByIP, ByHeader, ByRoute, a Combine of them, another
	// function, or ByNothing for one quota that all requests share. The address of the client takes
	// the place of an empty key. A key of more than 64 bytes is stored as its SHA-256. Required.
	By func(*http.Request) string

	// When reports whether the policy applies to a request, for example to the clients of one plan.
	// A request to which no policy applies is neither limited nor counted. By default the policy
	// applies to all requests.
	When func(*http.Request) bool

	// Shadow counts the requests that the policy would refuse, and allows them. A Remote may have
	// its own shadow mode. Default false.
	Shadow bool

	// ShowKeys makes Limit.Busiest return the keys themselves, which may be personal data or
	// secrets, and keeps their texts. Otherwise it returns hashes of them. Default false.
	ShowKeys bool

	// MaxKeys is how many keys are stored. Default 100,000.
	MaxKeys int
	// ShareNew gives all new keys one quota that they share, while all MaxKeys keys are in use.
	// Otherwise requests with new keys share one quota per network of their clients, an IPv4 /24 or
	// an IPv6 /32. So a flood of keys from one network refuses new keys of that network only. Up to
	// MaxKeys/4 networks are stored, and requests from further networks are refused. Either is
	// logged to slog.Default, at most once per minute. Default false.
	ShareNew bool
}

// faults returns an error for each invalid field.
func (p Policy) faults() (faults []error) {
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("weirhttp: policy %q: "+format, append([]any{p.Name}, args...)...))
	}
	if p.Name == "" || len(p.Name) > maxName || strings.ContainsFunc(p.Name, isUnquotable) {
		fault("Name has %d bytes, must be 1 to %d printable ASCII characters without \" and \\", len(p.Name), maxName)
	}
	if len(p.Unit) > maxName || strings.ContainsFunc(p.Unit, isUnquotable) {
		fault("Unit has %d bytes, must be at most %d printable ASCII characters without \" and \\", len(p.Unit), maxName)
	}
	switch bucket, window, remote := p.isBucket(), p.isWindow(), p.Remote != nil; {
	case p.Quota != nil && (bucket || window || remote):
		fault("has a Quota and another limit, must have only one of them")
	case !bucket && !window && !remote && p.Quota == nil:
		fault("has no limit, must have Rate, or Limit and Window, or Quota, or Remote")
	case bucket && window:
		fault("has a Rate or Burst and a Limit or Window, must have only one of the two forms")
	case remote && (bucket || window):
		fault("has a Remote and another limit, must have only one of them")
	case bucket:
		p.bucketFaults(fault)
	case window:
		p.windowFaults(fault)
	}
	if p.By == nil {
		fault("By is nil, must be ByIP, ByHeader or another key function, or ByNothing for one quota of all requests")
	}
	if p.MaxKeys < 0 {
		fault("MaxKeys is %d, must be at least 1 (or 0 for the default)", p.MaxKeys)
	}
	if p.Remote != nil && (p.Shadow || p.MaxKeys > 0 || p.ShareNew) {
		fault("has a Remote, must have none of Shadow, MaxKeys and ShareNew")
	}
	if p.Quota != nil && (p.Shadow || p.ShowKeys || p.MaxKeys > 0 || p.ShareNew) {
		fault("has a Quota, must have none of Shadow, ShowKeys, MaxKeys and ShareNew: see quota.Config")
	}
	return faults
}

func (p Policy) bucketFaults(fault func(string, ...any)) {
	if p.Burst < 0 || p.Burst > maxQuota {
		fault("Burst is %d, must be between 1 and %d (or 0 for the default)", p.Burst, maxQuota)
	}
	switch {
	case p.Rate == limiter.Rate{}:
		fault("Rate is missing, must be set if Burst is")
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
		fault("Limit is %d, must be between 1 and %d", p.Limit, maxQuota)
	}
	if p.Window < minWindow || p.Window > maxWindow {
		fault("Window is %v, must be between %v and %v", p.Window, minWindow, maxWindow)
	}
}

func (p Policy) isBucket() bool { return p.Rate != limiter.Rate{} || p.Burst != 0 }

func (p Policy) isWindow() bool { return p.Limit != 0 || p.Window != 0 }

// requestsIn returns the quota of a policy that has neither a Quota nor a Remote: a number of
// requests and a time.
func (p Policy) requestsIn() (requests int64, in time.Duration) {
	if p.isWindow() {
		return int64(p.Limit), p.Window
	}
	return p.Rate.Ratio()
}

// interval returns the nanoseconds per request of a policy without a Quota or Remote.
func (p Policy) interval() float64 {
	n, in := p.requestsIn()
	return float64(in) / float64(n)
}

// maxKeys returns MaxKeys or its default, or that of the Quota.
func (p Policy) maxKeys() int {
	if p.Quota != nil {
		return p.Quota.Inside(friend.Key{}).MaxKeys()
	}
	return cmp.Or(p.MaxKeys, defaultKeys)
}

// keepsKeysIn reports whether the quotas of the keys stay as they are if q replaces p.
func (p Policy) keepsKeysIn(q Policy) bool {
	return p.Name == q.Name && p.Unit == q.Unit && p.Window == q.Window && p.Quota == q.Quota && p.isBucket() == q.isBucket() &&
		p.maxKeys() == q.maxKeys() && p.ShareNew == q.ShareNew
}

// isUnquotable reports whether a string of a structured field cannot contain the character
// unescaped.
func isUnquotable(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }

// validatePolicies returns an error that names all invalid fields of the policies, or nil if there
// are none.
func validatePolicies(policies []Policy) error {
	var faults []error
	names := map[string]bool{}
	for _, p := range policies {
		faults = append(faults, p.faults()...)
		if names[p.Name] {
			faults = append(faults, fmt.Errorf("weirhttp: policy %q: Name is used twice, must be unique", p.Name))
		}
		names[p.Name] = true
	}
	return errors.Join(faults...)
}
