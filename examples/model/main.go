// Command model calls a language model that limits the requests and the tokens per minute of each
// key, by the plan of the key. It uses 95 % of what the model allows, and never gets a 429.
//
// How many tokens an answer has is known only when it has been streamed. So each call takes an
// estimate, the 90th percentile of the answers that the key has had, and settles what it has used.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/limiter"
)

// used is the share of the limits of the model that the client uses.
const used = 0.95

func main() {
	minute := flag.Duration("minute", time.Second, "how long a minute of the limits takes")
	minutes := flag.Int("minutes", 10, "for how many minutes to call the model")
	flag.Parse()
	if err := run(*minute, *minutes); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// tally counts the calls of a key.
type tally struct{ answers, tokens, tooMany, others atomic.Int64 }

// run calls the model and prints what it has used.
func run(minute time.Duration, minutes int) error {
	url, stop, err := serve(minute)
	if err != nil {
		return err
	}
	defer stop()
	c := newClient(url, minute)
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(minutes)*minute)
	defer cancel()
	tallies := map[string]*tally{}
	var callers sync.WaitGroup
	for key := range plans {
		t := new(tally)
		tallies[key] = t
		for range 20 {
			callers.Go(func() { c.callUntil(ctx, key, t) })
		}
	}
	callers.Wait()
	for key, plan := range plans {
		t := tallies[key]
		fmt.Printf("%-5s  %5d answers, %7d tokens: %3.0f %% of what the model allows, %d times 429, %d other errors\n",
			key, t.answers.Load(), t.tokens.Load(), 100*float64(t.tokens.Load())/float64(plan.tokens*minutes), t.tooMany.Load(), t.others.Load())
		if t.tooMany.Load() > 0 {
			return errors.New("the model has refused requests")
		}
	}
	return nil
}

// client has a gate per key.
type client struct {
	url       string
	keys      *weir.Group[string]
	estimates *limiter.Estimates[string]
}

func newClient(url string, minute time.Duration) *client {
	c := &client{
		url: url,
		keys: weir.NewGroup[string]("model", weir.GroupConfig{Gate: weir.Config{
			Rate: limiter.Unlimited(), MaxWait: time.Minute, // SetLimits has the rates
		}}),
		estimates: limiter.NewEstimates[string](limiter.EstimatesConfig{Quantile: 0.9, First: 500, Most: 1000}),
	}
	c.keys.SetLimits(limits(minute, func(p plan) int { return p.requests }), limits(minute, func(p plan) int { return p.tokens }))
	return c
}

// limits returns the limits of the keys, with a tier per plan. A burst of a tenth of a minute
// leaves the model room for answers that are longer than their estimates.
func limits(minute time.Duration, of func(plan) int) *limiter.Group[string] {
	tier := func(p plan) limiter.Tier {
		return limiter.Tier{Rate: limiter.Per(used*float64(of(p)), minute), Burst: max(of(p)/10, 1)}
	}
	small := tier(plans["small"])
	return limiter.NewGroup(limiter.GroupConfig[string]{
		Rate: small.Rate, Burst: small.Burst, Tiers: []limiter.Tier{tier(plans["large"])},
		TierOf: func(key string) int {
			if key == "large" {
				return 0
			}
			return -1
		},
	})
}

// callUntil calls the model until the context ends.
func (c *client) callUntil(ctx context.Context, key string, t *tally) {
	for ctx.Err() == nil {
		tokens, err := c.ask(ctx, key)
		switch {
		case err == nil:
			t.answers.Add(1)
			t.tokens.Add(int64(tokens))
		case errors.Is(err, errTooMany):
			t.tooMany.Add(1)
		case ctx.Err() == nil && !errors.Is(err, weir.ErrRefused):
			t.others.Add(1)
		}
	}
}

// ask streams an answer, and settles what it has used.
func (c *client) ask(ctx context.Context, key string) (int, error) {
	ctx, cost := weir.WithCost(ctx, c.estimates.Of(key))
	tokens, err := weir.Do(ctx, c.keys.Get(key), func(ctx context.Context) (int, error) { return c.stream(ctx, key) })
	if err != nil {
		return 0, err // a call that fails on the way may have used its estimate
	}
	c.estimates.Record(key, tokens)
	return tokens, cost.Settle(tokens)
}

var errTooMany = errors.New("429 Too Many Requests")

// stream counts the tokens of a streamed answer, of which each is a line.
func (c *client) stream(ctx context.Context, key string) (tokens int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, http.NoBody)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusTooManyRequests:
		return 0, errTooMany
	default:
		return 0, errors.New(resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		tokens++
	}
	return tokens, lines.Err()
}
