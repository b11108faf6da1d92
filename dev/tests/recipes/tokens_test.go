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
	return recipes.NewModel(10, 1000, func(ctx context.Context, _ recipes.Prompt) (recipes.Completion, error) {
		if err := service.Call(ctx); err != nil {
			return recipes.Completion{}, err
		}
		return recipes.Completion{UsedTokens: 50}, nil
	})
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
		require.Zero(t, m.Requests.Get("a").Take(0).Remaining, "a refused reservation gives nothing back")
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

func TestAKeyThatThe429HoldsStopsNoOtherKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var service weirtest.Service
		m := newModel(&service)
		prompt := recipes.Prompt{Key: "a", InputTokens: 800}
		for range 100 { // far more than the breaker would need
			m.Requests.Forget("a")
			service.Next(1, weirtest.Answer{Err: &recipes.TooManyError{Wait: 20 * time.Second}})
			_, err := m.Ask(t.Context(), prompt)
			require.ErrorAs(t, err, new(*recipes.TooManyError))
		}
		require.Equal(t, breaker.Closed, m.Gate.Breaker().State())

		time.Sleep(5 * time.Second)
		_, err := m.Ask(t.Context(), prompt)
		limited := new(limiter.LimitedError)
		require.ErrorAs(t, err, &limited)
		require.Equal(t, limiter.Held, limited.Reason)
		require.Equal(t, 15*time.Second, weir.RetryAfter(err))
		require.Equal(t, 1000, m.Tokens.Get("a").Take(0).Remaining)
		other := prompt
		other.Key = "b"
		_, err = m.Ask(t.Context(), other)
		require.NoError(t, err)

		time.Sleep(15 * time.Second)
		_, err = m.Ask(t.Context(), prompt)
		require.NoError(t, err, "a held limit of tokens would have one token now")
	})
}

func TestAHeldLimitHasOneTokenAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(new(weirtest.Service))
		tokens := m.Tokens.Get("a")
		tokens.Hold(20 * time.Second)
		time.Sleep(20 * time.Second)
		require.Equal(t, 1, tokens.Take(0).Remaining)
		require.InDelta(t, 48, tokens.Take(801).RetryAfter.Seconds(), 0.001, "800 tokens at 1000 per minute")
	})
}

func TestAPromptWaitsForItsTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var service weirtest.Service
		m := newModel(&service)
		prompt := recipes.Prompt{Key: "a", InputTokens: 800}
		require.True(t, m.Tokens.Get("a").Take(900).OK)
		began := time.Now()
		_, err := m.AskAndWait(t.Context(), prompt)
		require.NoError(t, err)
		require.Equal(t, 42*time.Second, time.Since(began), "700 of 800 tokens are missing")

		service.Next(1, weirtest.Answer{Err: &recipes.TooManyError{Wait: 20 * time.Second}})
		time.Sleep(time.Hour)
		began = time.Now()
		_, err = m.AskAndWait(t.Context(), prompt)
		require.NoError(t, err)
		require.Equal(t, 20*time.Second, time.Since(began))

		_, err = m.AskAndWait(t.Context(), recipes.Prompt{Key: "a", InputTokens: 1001})
		require.Equal(t, limiter.Never, weir.RetryAfter(err))
		service.Next(1, weirtest.Answer{Err: weirtest.ErrDown})
		time.Sleep(time.Hour)
		_, err = m.AskAndWait(t.Context(), prompt)
		require.ErrorIs(t, err, weirtest.ErrDown)

		require.True(t, m.Tokens.Get("a").Take(1000).OK)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = m.AskAndWait(ctx, prompt)
		weirtest.WantRefused(t, err, limiter.ErrLimited)
		require.Error(t, ctx.Err())
	})
}

func TestAMinuteOfBurstAllowsTwoMinutesOfTokensInTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(new(weirtest.Service))
		taken := 0
		for range 60 * 100 { // until just before the end of the minute
			for m.Tokens.Get("a").Take(1).OK {
				taken++
			}
			time.Sleep(10 * time.Millisecond)
		}
		require.InDelta(t, 2000, taken, 1)
	})
}

func TestTheDefaultBurstRefusesPromptsAboveOneSecondOfTokens(t *testing.T) {
	tokens := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerMinute(6000)})
	require.True(t, tokens.Get("a").Take(100).OK)
	require.Equal(t, limiter.Never, tokens.Get("b").Take(101).RetryAfter)
}

// An answer that has used more than was reserved delays the next prompt.
func TestTokensBeyondTheEstimateAreADebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(new(weirtest.Service))
		m.Send = func(context.Context, recipes.Prompt) (recipes.Completion, error) {
			return recipes.Completion{UsedTokens: 1100}, nil
		}
		_, err := m.Ask(t.Context(), recipes.Prompt{Key: "a", InputTokens: 20, MaxOutputs: 80})
		require.NoError(t, err)
		_, err = m.Ask(t.Context(), recipes.Prompt{Key: "a", InputTokens: 20, MaxOutputs: 80})
		require.Equal(t, 12*time.Second, weir.RetryAfter(err), "200 tokens are missing")
		require.Equal(t, 9, m.Requests.Get("a").Take(0).Remaining)
	})
}
