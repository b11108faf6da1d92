package verdict

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/sentinel"
)

// retryError has a method RetryAfter.
type retryError time.Duration

func (retryError) Error() string               { return "retry" }
func (e retryError) RetryAfter() time.Duration { return time.Duration(e) }

// matchError matches other errors through its methods Is and As.
type matchError struct{ isRefusal, asRetry bool }

func (matchError) Error() string          { return "match" }
func (e matchError) Is(target error) bool { return e.isRefusal && target == sentinel.ErrRefused }
func (e matchError) As(target any) bool {
	to, ok := target.(*retryAfterer)
	if ok = ok && e.asRetry; ok {
		*to = retryError(7)
	}
	return ok
}

// refusedRetryError has a method RetryAfter and wraps a refusal.
type refusedRetryError struct{ retryError }

func (refusedRetryError) Unwrap() error { return sentinel.ErrRefused }

// randomError returns an error that wraps others at random.
func randomError(r *rand.Rand, depth int) error {
	switch r.IntN(9 - min(depth, 3)) {
	case 0:
		return errors.New("plain")
	case 1:
		return sentinel.ErrRefused
	case 2:
		return retryError(r.IntN(100))
	case 3:
		return matchError{r.IntN(2) == 0, r.IntN(2) == 0}
	case 4:
		return refusedRetryError{retryError(r.IntN(100))}
	case 5:
		return context.DeadlineExceeded
	case 6:
		return errors.Join(randomError(r, depth+1), nil, randomError(r, depth+1))
	case 7:
		return fmt.Errorf("two: %w, %w", randomError(r, depth+1), randomError(r, depth+1))
	}
	return fmt.Errorf("one: %w", randomError(r, depth+1))
}

func TestSearchFindsWhatErrorsIsAndAsFind(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	refusals, asked := 0, 0
	for range 20_000 {
		err := randomError(r, 0)
		var f Findings
		f.Search(err)
		var e retryAfterer
		found := errors.As(err, &e)
		require.Equal(t, errors.Is(err, sentinel.ErrRefused), f.Refused, "%#v", err)
		require.Equal(t, found, f.Asked, "%#v", err)
		if found {
			require.Equal(t, e.RetryAfter(), f.After, "%#v", err)
			asked++
		}
		if f.Refused {
			refusals++
		}
	}
	require.Greater(t, refusals, 1000)
	require.Greater(t, asked, 1000)
}
