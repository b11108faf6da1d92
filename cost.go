package weir

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/weir-go/weir/internal/remote"
	"github.com/weir-go/weir/limiter"
)

// Cost is what a call costs, for gates that limit costs: see [WithCost]. All methods are safe for
// concurrent use.
type Cost struct {
	estimate int
	ctx      context.Context // of the calls; a Remote needs it

	mu    sync.Mutex
	calls []costOfCall // at most one per gate
}

// costOfCall is what the last call through a gate has taken and not settled.
type costOfCall struct {
	gate *Gate
	*tokens
}

// costKey is the key of a *Cost in a context.
type costKey struct{}

// WithCost returns a context for a call whose cost is known only afterwards, such as the tokens of
// a language model. A gate that limits costs takes the estimate for the call. Settle then replaces
// it by what the call has really cost:
//
//	ctx, cost := weir.WithCost(ctx, estimate)
//	answer, err := weir.Do(ctx, model, ask)
//	if err == nil {
//		err = cost.Settle(answer.Tokens)
//	}
//
// Gates limit costs by Parts.Costs, Parts.RemoteCosts or [Group.SetLimits]. Other gates ignore the
// cost. A call without WithCost costs 1, as does an estimate below 1. See [limiter.Estimates] for
// estimates that are made from earlier costs.
//
// Use a context of its own for each call, also for each retry and hedge: Settle knows only the last
// call at each gate, and what an earlier one has taken stays taken.
func WithCost(ctx context.Context, estimate int) (context.Context, *Cost) {
	c := &Cost{estimate: max(estimate, 1), ctx: ctx}
	return context.WithValue(ctx, costKey{}, c), c
}

// costOf returns the cost of a call, or nil if the caller has not said it.
func costOf(ctx context.Context) *Cost {
	c, _ := ctx.Value(costKey{}).(*Cost)
	return c
}

// tokens returns how many tokens a call takes.
func (c *Cost) tokens() int {
	if c == nil {
		return 1
	}
	return c.estimate
}

// Settle replaces the estimate by what the call has really cost, at every gate that has allowed it.
// What it has cost less is given back as far as it still counts. What it has cost more becomes a
// debt of the limit: see [limiter.Reservation.Settle]. Call it when the cost is known, also before
// the end of the call. Without it the estimate stays charged; time.AfterFunc can call Settle at a
// deadline. A second Settle does nothing, unless another call was made meanwhile. A negative n
// counts as 0.
//
// Only a Remote makes Settle block, even if the context of the call has ended, and return an error.
// After an error it is not known whether the Remote has charged what the call has cost more.
func (c *Cost) Settle(n int) error {
	c.mu.Lock()
	calls := c.calls
	c.calls = nil
	c.mu.Unlock()
	var errs []error
	for _, call := range calls {
		call.local.Settle(n)
		errs = append(errs, call.remote.Settle(c.ctx, n))
	}
	return errors.Join(errs...)
}

// charge hands over the tokens of a call that the gate has allowed, if they are for its cost.
func (c *Cost) charge(g *setup, t *tokens) {
	mine := new(tokens)
	if g.costs {
		mine.local, t.local = t.local, limiter.Reservation{}
	}
	if g.remoteCosts {
		mine.remote, t.remote = t.remote, remote.Tokens{}
	}
	t.cost, t.charged = c, mine
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = slices.DeleteFunc(c.calls, func(call costOfCall) bool { return call.gate == g.Gate })
	c.calls = append(c.calls, costOfCall{g.Gate, mine})
}

// take removes what charge has added, and reports whether it was not settled yet.
func (c *Cost) take(t *tokens) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := len(c.calls)
	c.calls = slices.DeleteFunc(c.calls, func(call costOfCall) bool { return call.tokens == t })
	return len(c.calls) < all
}

// allTokens gives back all tokens of a reservation.
const allTokens = math.MaxInt
