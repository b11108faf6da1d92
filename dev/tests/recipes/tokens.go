package recipes

import (
	"context"
	"errors"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/limiter"
)

// Prompt is a request to a Model.
type Prompt struct {
	Key                     string
	InputTokens, MaxOutputs int
}

// Completion is an answer of a Model.
type Completion struct{ UsedTokens int }

// Model is the API of a language model. It has limits per key.
type Model struct {
	Gate             *weir.Gate
	Requests, Tokens *limiter.Group[string] // a minute
	Send             func(context.Context, Prompt) (Completion, error)
}

//readme:tokens

// Ask sends the prompt, unless a limit of its key or the gate refuses it.
func (m *Model) Ask(ctx context.Context, p Prompt) (Completion, error) {
	most := p.InputTokens + p.MaxOutputs
	request := limiter.Reserve(m.Requests.Get(p.Key), 1)
	tokens := limiter.Reserve(m.Tokens.Get(p.Key), most)
	if !request.OK || !tokens.OK {
		request.Refund(1)
		tokens.Refund(most)
		return Completion{}, overLimit(request.Result, tokens.Result)
	}
	done, err := weir.Do(ctx, m.Gate, func(ctx context.Context) (Completion, error) { return m.Send(ctx, p) })
	if errors.Is(err, weir.ErrRefused) {
		request.Refund(1)
	}
	tokens.Refund(most - done.UsedTokens) // all of them if there is no answer
	return done, err
}

//readme:end

//readme:tokens-error

// overLimit returns the error of a prompt for which one of the limits has too few tokens.
func overLimit(request, tokens limiter.Result) error {
	if tokens.RetryAfter == limiter.Never {
		return &limiter.LimitedError{Name: "model", Reason: limiter.OverLimit, Limit: tokens.Limit}
	}
	wait := max(request.RetryAfter, tokens.RetryAfter)
	return &limiter.LimitedError{Name: "model", Reason: limiter.NoTokens, Until: time.Now().Add(wait)}
}

//readme:end
