package weirhttp

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/stat"
)

// Limit is middleware that refuses requests beyond a quota, with status 429:
//
//	limit := weirhttp.NewLimit(weirhttp.LimitConfig{Policies: []weirhttp.Policy{
//		{Name: "second", Limit: 10, Span: time.Second, By: weirhttp.ByIP},
//		{Name: "day", Limit: 10_000, Span: 24 * time.Hour, By: weirhttp.ByIP},
//	}})
//	server := &http.Server{Addr: ":8080", Handler: limit.Handler(mux), ReadHeaderTimeout: 5 * time.Second}
//
// A refusal has Retry-After, in whole seconds and at least 1, and a body of application/problem+json that names the
// policies. All responses have RateLimit-Policy and RateLimit, as draft-ietf-httpapi-ratelimit-headers-10 and -11 have
// them: of each policy that the request falls under, its quota and window, what is left, and the seconds in which the
// client can use no more than that, stretched so that r/t is no more than the quota's rate. A refusal tells that time
// only of the policies that refused.
//
// Memory is bounded by MaxKeys of each policy, at about 120 bytes a key and what the client calls itself; a name or a
// route of more than 64 bytes is kept as its SHA-256. A quarter as many networks come on top (see Policy.Overflow).
// It is a [stat.Source], by policy and never by key. All methods are safe for concurrent use, and none blocks.
type Limit struct {
	changing sync.Mutex
	rules    atomic.Pointer[rules]
}

// NewLimit makes a limit with all quotas full. It panics with the error of c.Validate where there is one.
func NewLimit(c LimitConfig) *Limit {
	l := &Limit{}
	if err := l.Reconfigure(c); err != nil {
		panic(err)
	}
	return l
}

// Reconfigure puts another configuration in the place of the present one, whole and at once. Where a policy with the
// same Name, By, MaxKeys and Overflow was there before, its quotas go on with what is left in them (see
// [limiter.Group.SetTier]) and its counts too, unless Shadow has changed; else they begin full. If c is not valid its
// error is returned and nothing has changed.
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

// Handler returns next behind the limit. One Limit may stand before any number of handlers, which share its quotas.
// It keeps the ResponseWriter as it is, so streams, upgrades and [http.ResponseController] work.
func (l *Limit) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rules := l.rules.Load()
		who := rules.sender(r)
		if rules.exempt.has(&who) {
			next.ServeHTTP(w, r)
			return
		}
		var room [8]answer // enough for most, and not on the heap
		v, now := verdict{cost: rules.cost(r)}, time.Now()
		v.answers = rules.look(room[:0], now, &who, v.cost)
		v.settle(now, rules.config.CountRefused)
		rules.tell(w.Header(), &v)
		if v.refused {
			rules.refuse(w, r, &v, &who)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Charge takes n more from the quotas that a request falls under, or what is left of them: for a login that failed, say,
// so that guessing is expensive. The request is the one that passed the limit.
func (l *Limit) Charge(r *http.Request, n int) {
	rules := l.rules.Load()
	who := rules.sender(r)
	if !rules.exempt.has(&who) {
		rules.charge(&who, n)
	}
}

func (s *rules) refuse(w http.ResponseWriter, r *http.Request, v *verdict, who *sender) {
	refusal := Refusal{Status: http.StatusTooManyRequests, RetryAfter: v.retryAfter(), IP: who.addr, Route: who.route}
	for i := range v.answers {
		if a := &v.answers[i]; !a.result.OK {
			refusal.Policies = append(refusal.Policies, a.quota.policy.Name)
		}
	}
	refusal.answer(w, r, s.config.OnRefusal, s.config.Answer)
}

// Observe yields the figures of each policy: see [limiter.NamedGroup]. Requests for which there was no
// room (see Policy.Overflow) count as refused there, and are counted again under the policy's name and " by network".
func (l *Limit) Observe(yield func(*stat.Series, float64) bool) {
	for _, q := range l.rules.Load().quotas {
		for s, v := range q.keys.Observe {
			if !yield(s, v) {
				return
			}
		}
		if q.networks == nil {
			continue
		}
		for s, v := range q.networks.Observe {
			if !yield(s, v) {
				return
			}
		}
	}
}
