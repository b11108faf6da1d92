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
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirtest"
)

// newModel returns a model that allows 10 requests and 1000 tokens per minute and key. A prompt
// uses 50 tokens.
func newModel(service *weirtest.Service) *recipes.Model {
	perMinute := func(n int) *limiter.Group[string] {
		return limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerMinute(float64(n)), Burst: n})
	}
	return &recipes.Model{
		Gate:     weir.New("model", weir.Config{}),
		Requests: perMinute(10),
		Tokens:   perMinute(1000),
		Send: func(ctx context.Context, _ recipes.Prompt) (recipes.Completion, error) {
			if err := service.Call(ctx); err != nil {
				return recipes.Completion{}, err
			}
			return recipes.Completion{UsedTokens: 50}, nil
		},
	}
}

func TestTokensThatAnAnswerDoesNotUseComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var service weirtest.Service
		m := newModel(&service)
		prompt := recipes.Prompt{Key: "a", InputTokens: 20, MaxOutputs: 580}
		for used := 50; used <= 400; used += 50 {
			_, err := m.Ask(t.Context(), prompt)
			require.NoError(t, err)
			require.Equal(t, 1000-used, m.Tokens.Get("a").Take(0).Remaining)
		}
		require.Equal(t, 2, m.Requests.Get("a").Take(0).Remaining)

		prompt.MaxOutputs = 780
		_, err := m.Ask(t.Context(), prompt)
		weirtest.WantRefused(t, err, limiter.ErrLimited)
		require.Equal(t, 12*time.Second, weir.RetryAfter(err), "200 of 800 tokens are missing")
		require.Equal(t, 2, m.Requests.Get("a").Take(0).Remaining, "a refused prompt is no request")
		require.Equal(t, 8, service.Calls())
		time.Sleep(12 * time.Second)
		_, err = m.Ask(t.Context(), prompt)
		require.NoError(t, err)
	})
}

func TestRequestsOfAKeyAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var service weirtest.Service
		m := newModel(&service)
		prompt := recipes.Prompt{Key: "a", InputTokens: 20, MaxOutputs: 30}
		for range 10 {
			_, err := m.Ask(t.Context(), prompt)
			require.NoError(t, err)
		}
		_, err := m.Ask(t.Context(), prompt)
		weirtest.WantRefused(t, err, limiter.ErrLimited)
		require.Equal(t, 6*time.Second, weir.RetryAfter(err))
		require.Equal(t, 500, m.Tokens.Get("a").Take(0).Remaining, "a refused prompt takes no tokens")
		prompt.Key = "b"
		_, err = m.Ask(t.Context(), prompt)
		require.NoError(t, err)
	})
}

func TestAPromptThatIsTooLargeIsNeverAllowed(t *testing.T) {
	var service weirtest.Service
	m := newModel(&service)
	_, err := m.Ask(t.Context(), recipes.Prompt{Key: "a", InputTokens: 1001})
	weirtest.WantRefused(t, err, limiter.ErrLimited)
	require.Equal(t, limiter.Never, weir.RetryAfter(err))
	require.Equal(t, 10, m.Requests.Get("a").Take(0).Remaining)
}

func TestAModelThatIsDownTakesNoTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var service weirtest.Service
		m := newModel(&service)
		service.Next(1, weirtest.Answer{Err: weirtest.ErrDown})
		prompt := recipes.Prompt{Key: "a", InputTokens: 20, MaxOutputs: 580}
		_, err := m.Ask(t.Context(), prompt)
		require.ErrorIs(t, err, weirtest.ErrDown)
		require.Equal(t, 1000, m.Tokens.Get("a").Take(0).Remaining)
		require.Equal(t, 9, m.Requests.Get("a").Take(0).Remaining, "a failed request was sent")

		m.Gate.Breaker().OpenFor(time.Minute)
		_, err = m.Ask(t.Context(), prompt)
		weirtest.WantRefused(t, err, breaker.ErrOpen)
		require.Equal(t, 1000, m.Tokens.Get("a").Take(0).Remaining)
		require.Equal(t, 9, m.Requests.Get("a").Take(0).Remaining)
	})
}
