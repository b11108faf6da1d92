package weirhttp

import (
	"errors"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/weir-go/weir/stat"
)

// Limit is middleware that refuses requests beyond a quota, with status 429:
//
//	limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{
//		{Name: "second", Rate: limiter.PerSecond(10), Burst: 20, By: weirhttp.ByIP},
//		{Name: "day", Limit: 10_000, Window: 24 * time.Hour, By: weirhttp.ByIP},
//	}})
//	server := &http.Server{Addr: ":8080", Handler: limit.Handler(mux), ReadHeaderTimeout: 5 * time.Second}
//
// A refusal has Retry-After, in whole seconds and at least 1, and a body of application/problem+json
// that names the policies. All responses have RateLimit-Policy and RateLimit as in
// draft-ietf-httpapi-ratelimit-headers-10 and -11: for each policy that applies to the request its
// quota and window, what is left of it, and the number of seconds in which the client can use no more
// than that. That time is stretched so that r/t is at most the rate of the policy. A refusal tells it
// only for the policies that refused.
//
// Memory is bounded by MaxKeys of each policy. A quarter as many networks are remembered in addition
// (see Policy.Overflow). A Limit is a [stat.Source], by policy and never by key. All methods are safe
// for concurrent use. They do not block, except that a Remote is waited for.
type Limit struct {
	changing sync.Mutex
	rules    atomic.Pointer[rules]
}

// NewLimit returns a limit with all quotas full. It panics with the error of c.Validate if there is one.
func NewLimit(c LimitConfig) *Limit {
	l := &Limit{}
	if err := l.Reconfigure(c); err != nil {
		panic(err)
	}
	return l
}

// Reconfigure replaces the configuration as a whole. If a policy with the same Name, form, Window,
// MaxKeys and Overflow was there before, its quotas keep what is left in them, and its counts go on
// unless Shadow has changed. Other policies begin with full quotas. If c is not valid, Reconfigure
// returns the error and changes nothing.
func (l *Limit) Reconfigure(c LimitConfig) error {
	if err := c.Validate(); err != nil {
		return err
	}
	l.changing.Lock()
	defer l.changing.Unlock()
	next, err := newRules(c, l.rules.Load())
	if err == nil {
		l.rules.Store(next)
	}
	return err
}

// Handler returns next behind the limit. A Limit may stand before any number of handlers, which share
// its quotas. The ResponseWriter is passed on as it is, so streams, upgrades and
// [http.ResponseController] work.
func (l *Limit) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rules := l.rules.Load()
		inner, addr := rules.config.Proxies.identify(r)
		if rules.exempt(inner) {
			serve(next, w, r, inner)
			return
		}
		var room [4]answer // enough for most, and not on the heap
		d := decision{cost: rules.cost(inner), answers: rules.answers(room[:0], inner, addr)}
		err := d.decide(r.Context(), rules.config.CountRefused)
		if err == nil {
			rules.writeHeaders(w.Header(), &d)
		}
		if err != nil || d.refused() {
			rules.refuse(w, inner, &d, err)
			return
		}
		serve(next, w, r, inner)
	})
}

// serve calls next with a request that may be a copy of the outer one, whose Pattern it keeps: an
// outer handler that logs the route reads it there.
func serve(next http.Handler, w http.ResponseWriter, outer, inner *http.Request) {
	if inner != outer {
		defer func() { outer.Pattern = inner.Pattern }() // also if the handler panics
	}
	next.ServeHTTP(w, inner)
}

// Charge takes n more from the quotas of a request, or what is left of them: for a failed login, say,
// so that guessing is expensive. The request is the one that the handler behind the limit got.
func (l *Limit) Charge(r *http.Request, n int) {
	rules := l.rules.Load()
	r, addr := rules.config.Proxies.identify(r)
	if rules.exempt(r) {
		return
	}
	for _, q := range rules.quotas {
		if q.applies(r) {
			q.charge(r, addr, n)
		}
	}
}

// refuse answers a request that was refused, or for which there was no decision.
func (s *rules) refuse(w http.ResponseWriter, r *http.Request, d *decision, err error) {
	refusal := Refusal{Status: http.StatusTooManyRequests, RetryAfter: d.retryAfter(), Err: err}
	if err != nil {
		refusal.Status = http.StatusServiceUnavailable
	}
	for i := range d.answers {
		if a := &d.answers[i]; a.refused() {
			refusal.Policies = append(refusal.Policies, a.quota.policy.Name)
		}
	}
	hook := s.config.OnRefusal
	if r.Context().Err() != nil && errors.Is(err, r.Context().Err()) {
		hook = nil // the client went away while a Remote was asked
	}
	refusal.answer(w, r, hook, s.config.Answer)
}

// Observe yields the statistics of each policy, as [limiter.Group] does. Requests that are counted by
// network (see Policy.Overflow) have the policy's name with " by network" appended. A policy with a
// Remote has no statistics here.
func (l *Limit) Observe(yield func(*stat.Series, float64) bool) {
	for _, q := range l.rules.Load().quotas {
		if !q.observe(yield) {
			return
		}
	}
}
