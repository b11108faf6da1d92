package weir

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/internal/striped"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// attemptKey is the key of the number of an attempt in a context.
type attemptKey struct{}

// WithAttempt returns a context for the nth further attempt of a call: 1 is the first retry, or the
// first hedge. 0 or less is the call itself. Count only attempts that no gate has refused: what
// follows them is not a retry for the service. Gates with a retry budget count such calls as
// retries: see Config.RetryShare. Clients of weirhttp and weirgrpc tell the service the number, so
// that its Shed refuses retries first.
//
// A server does not pass the number of a request on to the calls that it makes for the request,
// because these are first calls of its own.
func WithAttempt(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, attemptKey{}, n)
}

// Attempt returns the number of WithAttempt, or 0 without it.
func Attempt(ctx context.Context) int {
	n, _ := ctx.Value(attemptKey{}).(int)
	return max(n, 0)
}

// RetryError is the error of a retry or hedge that the retry budget does not allow: see
// Config.RetryShare. It matches ErrRefused.
type RetryError struct {
	// Name is the name of the gate, or of the budget if gates share it.
	Name string
	// Share is the most retries per first call.
	Share float64
}

func (e *RetryError) Error() string {
	return fmt.Sprintf("retry budget %s is used up: it allows %.4g retries per first call", strconv.Quote(e.Name), e.Share)
}

// RetryAfter returns limiter.Never, because the budget grows by first calls and not by time.
func (e *RetryError) RetryAfter() time.Duration { return limiter.Never }

// Is reports whether the target is ErrRefused.
func (e *RetryError) Is(target error) bool { return target == ErrRefused }

// RetryBudgetConfig configures a [RetryBudget]. The zero value is valid.
type RetryBudgetConfig struct {
	// Share is the most retries and hedges per first call, from 0.001 to 1. Default 0.1.
	Share float64
	// Burst is how many retries and hedges are allowed besides, from 1 to 1,000,000. Default 10.
	Burst int
}

const (
	defaultRetryShare = 0.1
	defaultRetryBurst = 10
	leastRetryShare   = 0.001
	mostRetryBurst    = 1_000_000
)

func (c RetryBudgetConfig) withDefaults() RetryBudgetConfig {
	if c.Share == 0 {
		c.Share = defaultRetryShare
	}
	if c.Burst == 0 {
		c.Burst = defaultRetryBurst
	}
	return c
}

// Validate returns an error that names all invalid fields, or nil if there are none.
func (c RetryBudgetConfig) Validate() error { return c.validate("Share", "Burst") }

// validate names the fields as the caller does.
func (c RetryBudgetConfig) validate(share, burst string) error {
	var errs []error
	c = c.withDefaults()
	if !(c.Share >= leastRetryShare && c.Share <= 1) { // also NaN
		errs = append(errs, fmt.Errorf("weir: %s is %v, must be between %v and 1", share, c.Share, leastRetryShare))
	}
	if c.Burst < 1 || c.Burst > mostRetryBurst {
		errs = append(errs, fmt.Errorf("weir: %s is %d, must be between 1 and %d", burst, c.Burst, mostRetryBurst))
	}
	return errors.Join(errs...)
}

// RetryBudget bounds the retries and hedges of one or several gates. In any span of time they are
// at most Share of the first calls in that span, and Burst. So an outage makes at most Share more
// calls, however many retries the callers would make.
//
// It is a token bucket that begins with Burst tokens. Each first call that a gate allows adds Share
// of a token, up to Burst, and each retry takes one. Finagle and gRPC (gRFC A6) bound retries in
// the same way, except that gRPC adds tokens only for successes.
//
// All methods are safe for concurrent use. The zero value does not work: use NewRetryBudget.
type RetryBudget struct {
	tokens atomic.Int64 // in units of 1/tokenUnits
	limits atomic.Pointer[retryLimits]
	counts *retryCounts
}

// tokenUnits is the number of units of a token.
const tokenUnits = 1 << 20

// retryLimits are the config of a budget. share is rounded down, so the bound holds exactly.
type retryLimits struct {
	config        RetryBudgetConfig
	share, tokens int64 // in units
}

// retryCounts are the numbers of calls of a budget, or of those of all keys of a group.
type retryCounts struct {
	name             string
	created          time.Time
	first            striped.Counter
	retries, refused atomic.Int64
	series           atomic.Pointer[instrument.RetrySeries]
}

// NewRetryBudget returns a budget that gates of [Join] can share. The name appears in errors and
// metrics. NewRetryBudget panics with the error of c.Validate if c is invalid.
func NewRetryBudget(name string, c RetryBudgetConfig) *RetryBudget {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	return newRetryBudget(c, &retryCounts{name: name, created: time.Now()})
}

func newRetryBudget(c RetryBudgetConfig, counts *retryCounts) *RetryBudget {
	b := &RetryBudget{counts: counts}
	b.tokens.Store(math.MaxInt64)
	b.setLimits(c)
	return b
}

// setLimits changes a valid config. The budget keeps its tokens, but not more than the new Burst.
func (b *RetryBudget) setLimits(c RetryBudgetConfig) {
	c = c.withDefaults()
	l := &retryLimits{config: c, share: int64(c.Share * tokenUnits), tokens: int64(c.Burst) * tokenUnits}
	b.limits.Store(l)
	for have := b.tokens.Load(); have > l.tokens && !b.tokens.CompareAndSwap(have, l.tokens); {
		have = b.tokens.Load()
	}
}

// Totals returns the lifetime counts: first calls as successes, retries as failures, and the
// retries that the budget has refused as refused calls. So with alert.FailureRate a rule can watch
// the share of retries among all calls, including those that were refused.
func (b *RetryBudget) Totals() window.Totals {
	c := b.counts
	return window.Totals{Successes: int64(c.first.Load()), Failures: c.retries.Load(), Refused: c.refused.Load()}
}

// Observe yields the metric weir.retry.calls: a RetryBudget is a [stat.Source].
func (b *RetryBudget) Observe(yield func(*stat.Series, float64) bool) { b.counts.observe(yield) }

// observe yields the counts. It reports whether yield wants more.
func (c *retryCounts) observe(yield func(*stat.Series, float64) bool) bool {
	s := c.series.Load()
	if s == nil {
		c.series.CompareAndSwap(nil, instrument.NewRetrySeries(c.name, c.created))
		s = c.series.Load()
	}
	return yield(s.First, float64(c.first.Load())) && yield(s.Retries, float64(c.retries.Load())) &&
		yield(s.Refused, float64(c.refused.Load()))
}

// check returns the error of a retry for which there is no token. It takes none.
func (b *RetryBudget) check() error {
	if b.tokens.Load() >= tokenUnits {
		return nil
	}
	return b.refuse()
}

// take takes the token of a retry that is about to be made, or returns the error of the refusal.
// If calls took their tokens before they wait, more retries could begin at once than Burst.
func (b *RetryBudget) take() error {
	for have := b.tokens.Load(); have >= tokenUnits; have = b.tokens.Load() {
		if b.tokens.CompareAndSwap(have, have-tokenUnits) {
			return nil
		}
	}
	return b.refuse()
}

func (b *RetryBudget) refuse() error {
	b.counts.refused.Add(1)
	return &RetryError{Name: b.counts.name, Share: b.limits.Load().config.Share}
}

// giveBack gives the token of a retry back that is not made.
func (b *RetryBudget) giveBack() { b.add(tokenUnits) }

// add adds units, up to Burst. A full bucket, which is the usual case, is only read.
func (b *RetryBudget) add(units int64) {
	most := b.limits.Load().tokens
	for have := b.tokens.Load(); have < most; have = b.tokens.Load() {
		if b.tokens.CompareAndSwap(have, min(have+units, most)) {
			return
		}
	}
}

// admitted counts a call that is made.
func (b *RetryBudget) admitted(retry bool) {
	if retry {
		b.counts.retries.Add(1)
		return
	}
	b.counts.first.Add(1)
	b.add(b.limits.Load().share)
}
