package recipes_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/dev/tests/recipes"
	"github.com/weir-go/weir/weirtest"
)

func TestAStaleQuoteReplacesARefusedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var service weirtest.Service
		quotes := recipes.Quotes{
			Gate: weir.New("quotes", weir.Config{}),
			Fetch: func(ctx context.Context, _ string) (recipes.Quote, error) {
				return recipes.Quote{Cents: 7, At: time.Now()}, service.Call(ctx)
			},
		}
		known := time.Now()
		_, err := quotes.Get(t.Context(), "a")
		require.NoError(t, err)

		service.Always(weirtest.Answer{Err: weirtest.ErrDown})
		time.Sleep(time.Second)
		_, err = quotes.Get(t.Context(), "a")
		require.ErrorIs(t, err, weirtest.ErrDown, "a failure is returned as it is")
		quotes.Gate.Breaker().OpenFor(2 * time.Hour)
		quote, err := quotes.Get(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, recipes.Quote{Cents: 7, At: known}, quote)

		_, err = quotes.Get(t.Context(), "b")
		weirtest.WantRefused(t, err, breaker.ErrOpen)
		require.ErrorContains(t, err, "no quote of b")
		require.Equal(t, 2*time.Hour, weir.RetryAfter(err))

		time.Sleep(time.Hour)
		_, err = quotes.Get(t.Context(), "a")
		weirtest.WantRefused(t, err, breaker.ErrOpen)
	})
}
