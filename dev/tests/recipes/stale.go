package recipes

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weir-go/weir"
)

// Quotes returns prices.
type Quotes struct {
	Gate  *weir.Gate
	Fetch func(ctx context.Context, id string) (Quote, error)
	last  sync.Map // of an ID: the last Quote
}

// Quote is a price, and since when it is known.
type Quote struct {
	Cents int
	At    time.Time
}

//readme:stale

// Get returns a new quote, or the last one, up to an hour old, if the gate refuses the call.
func (q *Quotes) Get(ctx context.Context, id string) (Quote, error) {
	return weir.DoOr(ctx, q.Gate, func(ctx context.Context) (Quote, error) {
		quote, err := q.Fetch(ctx, id)
		if err == nil {
			q.last.Store(id, quote)
		}
		return quote, err
	}, func(_ context.Context, refusal error) (Quote, error) { return q.stale(id, refusal) })
}

func (q *Quotes) stale(id string, reason error) (Quote, error) {
	last, ok := q.last.Load(id)
	if !ok || time.Since(last.(Quote).At) > time.Hour {
		return Quote{}, fmt.Errorf("no quote of %s, not even a stale one: %w", id, reason)
	}
	return last.(Quote), nil
}

//readme:end
