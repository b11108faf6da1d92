package recipes

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// Prompt is a request to a Model.
type Prompt struct {
	Key                     string
	InputTokens, MaxOutputs int
}

// Completion is an answer of a Model.
type Completion struct{ UsedTokens int }

// TooManyError is the error of a key that has reached its limit at the provider, which answers 429.
type TooManyError struct{ Wait time.Duration }

func (e *TooManyError) Error() string { return "429 Too Many Requests" }

// RetryAfter returns the Retry-After of the answer.
func (e *TooManyError) RetryAfter() time.Duration { return e.Wait }

// Model is the API of a language model. It has limits per key.
type Model struct {
	Gate             *weir.Gate
	Requests, Tokens *limiter.Group[string]
	Send             func(context.Context, Prompt) (Completion, error)
}

//readme:tokens-new

// NewModel returns a Model whose keys have the limits per minute. After a 429, send returns a
// TooManyError.
func NewModel(requests, tokens int, send func(context.Context, Prompt) (Completion, error)) *Model {
	perMinute := func(n int) *limiter.Group[string] {
		return limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerMinute(float64(n)), Burst: n})
	}
	return &Model{
		Gate: weir.New("model", weir.Config{Breaker: breaker.Config{Classify: func(err error) breaker.Outcome {
			if _, ok := errors.AsType[*TooManyError](err); ok {
				return breaker.Ignored // the limit of one key says nothing about the others
			}
			return breaker.DefaultClassify(err)
		}}}),
		Requests: perMinute(requests), Tokens: perMinute(tokens), Send: send,
	}
}

//readme:end

//readme:tokens

// Ask sends the prompt, unless a limit of its key or the gate refuses it.
func (m *Model) Ask(ctx context.Context, p Prompt) (Completion, error) {
	limits := limiter.NewJoint("", limiter.PerRequest(m.Requests.Get(p.Key)), m.Tokens.Get(p.Key))
	estimate := p.InputTokens + p.MaxOutputs
	reserved := limiter.Reserve(limits, estimate)
	if !reserved.OK {
		return Completion{}, m.overLimit(p.Key, reserved.Result)
	}
	done, err := weir.Do(ctx, m.Gate, func(ctx context.Context) (Completion, error) { return m.Send(ctx, p) })
	if errors.Is(err, weir.ErrRefused) {
		reserved.Refund(estimate) // no request was made
	} else if limited, ok := errors.AsType[*TooManyError](err); ok {
		m.Requests.Get(p.Key).Hold(limited.Wait)
	}
	reserved.Settle(done.UsedTokens) // 0 if there is no answer
	return done, err
}

//readme:end

//readme:tokens-error

// overLimit returns the error of a prompt that one of the limits of its key has refused.
func (m *Model) overLimit(key string, r limiter.Result) error {
	reason := limiter.NoTokens
	switch {
	case r.RetryAfter == limiter.Never:
		return &limiter.LimitedError{Name: "model", Reason: limiter.OverLimit, Limit: r.Limit}
	case !m.Requests.Get(key).Take(0).OK: // held: an empty bucket allows a request for 0 tokens
		reason = limiter.Held
	}
	return &limiter.LimitedError{Name: "model", Reason: reason, Until: time.Now().Add(r.RetryAfter)}
}

//readme:end

//readme:tokens-wait

// AskAndWait is Ask, but waits for as long as the limits, the gate and the provider say.
func (m *Model) AskAndWait(ctx context.Context, p Prompt) (Completion, error) {
	for {
		done, err := m.Ask(ctx, p)
		wait := weir.RetryAfter(err) // 0 if there is no error, or it does not say
		if wait == 0 || wait == limiter.Never {
			return done, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return done, err
		}
	}
}

//readme:end
