package limiter

import (
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/busy"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/internal/latency"
	"github.com/weir-go/weir/internal/sentinel"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// Requests counts the requests to a limit: how they ended, how long they waited, and which keys
// were refused most often. It exports the metrics that the limiters of this package export, so it
// is a [stat.Source]. They, gates and bounds on calls in flight count with a Requests. Use one for
// a limiter of your own.
//
// All methods are safe for concurrent use. The zero value does not work: use NewRequests.
type Requests struct {
	name    string
	created time.Time
	counts  [outcomes]requestCount            // by outcome
	near    atomic.Int64                      // tokens
	full    atomic.Int64                      // requests for which the queue was full
	waiting atomic.Int64                      // requests
	waits   atomic.Pointer[latency.Histogram] // nil until a request has waited
	made    atomic.Pointer[instrument.LimiterSeries]
	keys    *busy.Sketch[string] // nil unless it was made by NewRequests
}

// NewRequests returns counts of 0 for the limiter with the name. showKeys makes Busiest return the
// keys themselves instead of hashes.
func NewRequests(name string, showKeys bool) *Requests {
	return &Requests{name: name, created: time.Now(), keys: busy.New[string](showKeys)}
}

// Name returns the name.
func (r *Requests) Name() string { return r.name }

// Record counts a request for n tokens that was answered with the result: allowed or refused, and
// by Limit and Remaining whether the tokens were near the limit. A request for 0 tokens is not
// counted, and a negative n counts as a request for none.
func (r *Requests) Record(result Result, n int) {
	switch {
	case n == 0:
	case result.OK:
		r.counts[allowed].add(n)
		r.recordNear(result, max(n, 0))
	default:
		r.counts[refused].add(n)
	}
}

// recordNear counts how many of the n tokens just taken are near the limit.
func (r *Requests) recordNear(result Result, n int) {
	if result.Limit == math.MaxInt {
		return
	}
	// float rounding must not move 0.8 of 10 below 8
	threshold := nearShare * float64(result.Limit) * (1 + 0x1p-50)
	if beyond := result.Limit - result.Remaining - int(math.Floor(threshold)); beyond > 0 {
		r.near.Add(int64(min(n, beyond)))
	}
}

// RecordKey counts a refusal of the key for Busiest.
func (r *Requests) RecordKey(key string) { r.keys.Add(key) }

// Busiest returns up to n of the keys of RecordKey, with the one that was refused most often first.
func (r *Requests) Busiest(n int) (keys []BusyKey) {
	for _, k := range r.keys.Busiest(r.name, n) {
		keys = append(keys, BusyKey(k))
	}
	return keys
}

// BeginWait counts a request that begins to wait. Call end once when the wait for n tokens ends. It
// counts how the wait has ended: with tokens if err is nil, with a refusal if err is one, and by
// the caller otherwise. With n of 0 it counts only that the request no longer waits.
func (r *Requests) BeginWait() (end func(n int, err error)) {
	began := r.beginWait()
	return func(n int, err error) { r.endWait(began, n, err) }
}

func (r *Requests) beginWait() (began time.Time) {
	r.waiting.Add(1)
	return time.Now()
}

func (r *Requests) endWait(began time.Time, n int, err error) {
	ok := err == nil && n != 0
	inside{}.EndCall(r, time.Since(began), ok)
	switch {
	case n == 0:
	case ok:
		r.counts[waited].addTokens(n)
	case errors.Is(err, sentinel.ErrRefused):
		r.counts[refused].add(n)
		if limited, ok := errors.AsType[*LimitedError](err); ok && limited.Reason == QueueFull {
			r.full.Add(1)
		}
	default:
		r.counts[cancelled].add(n)
	}
}

// Stats returns the counts. Shadowed is that of a limiter in shadow mode.
func (r *Requests) Stats() Stats {
	return Stats{
		Allowed: r.of(allowed), Waited: r.of(waited), Refused: r.of(refused), Cancelled: r.of(cancelled),
		Shadowed: r.of(shadowed), Near: r.near.Load(), Waiting: r.waiting.Load(),
	}
}

func (r *Requests) of(outcome int) int64 { return r.counts[outcome].requests.Load() }

// Histograms yields the waiting times of the requests that were allowed after a wait. It yields
// nothing until there is such a request.
func (r *Requests) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	if counted := r.waits.Load(); counted != nil {
		waits := window.Latency(counted.Snapshot())
		yield(r.series().Wait, waits.Histogram())
	}
}

// Observe yields the counts. Add what your limiter knows besides.
func (r *Requests) Observe(yield func(*stat.Series, float64) bool) {
	r.observe(observed{tokens: true, near: true}, yield)
}

// observed says what of the counts is exported.
type observed struct {
	allowed      int64 // requests that were allowed and are counted elsewhere
	waiting      int64 // likewise, requests that wait
	tokens, near bool
	oneToken     bool // each request is one for one token
	shadow       bool // shadow mode is on, so Shadowed is shown
}

// observe yields the counts and reports whether yield wants more.
func (r *Requests) observe(o observed, yield func(*stat.Series, float64) bool) bool {
	s := r.series()
	for i := range r.counts {
		requests, tokens := r.of(i), r.counts[i].tokenSum()
		if i == allowed {
			requests += o.allowed
		}
		if o.oneToken {
			tokens = requests
		}
		if i == shadowed && !o.shadow && requests == 0 {
			continue
		}
		if !yield(s.Requests[i], float64(requests)) || o.tokens && !yield(s.Tokens[i], float64(tokens)) {
			return false
		}
	}
	return s.YieldQueueFull(r.full.Load(), yield) && (!o.near || yield(s.Near, float64(r.near.Load()))) &&
		yield(s.Waiting, float64(r.waiting.Load()+o.waiting))
}

// series returns the series, which are made when they are first read.
func (r *Requests) series() *instrument.LimiterSeries {
	if r.made.Load() == nil {
		r.made.CompareAndSwap(nil, instrument.NewLimiterSeries(r.name, r.created))
	}
	return r.made.Load()
}

// The outcomes of a request.
const (
	allowed   = instrument.Allowed
	refused   = instrument.Refused
	waited    = instrument.Waited
	cancelled = instrument.Cancelled
	shadowed  = instrument.Shadowed
	outcomes  = instrument.LimiterOutcomes
)

// requestCount counts the requests with one outcome, and the tokens they asked for.
type requestCount struct{ requests, tokens atomic.Int64 }

func (c *requestCount) add(n int) {
	c.requests.Add(1)
	c.addTokens(n)
}

func (c *requestCount) addTokens(n int) {
	if c.tokens.Add(int64(max(n, 0))) < 0 {
		c.tokens.Store(math.MaxInt64) // the sum stays at the maximum instead of wrapping around
	}
}

func (c *requestCount) tokenSum() int64 {
	tokens := c.tokens.Load()
	if tokens < 0 {
		tokens = math.MaxInt64 // add will store it
	}
	return tokens
}
