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

// asking asks for a wait.
type asking time.Duration

func (asking) Error() string               { return "asking" }
func (a asking) RetryAfter() time.Duration { return time.Duration(a) }

// passing passes for others.
type passing struct{ refusal, asks bool }

func (passing) Error() string          { return "passing" }
func (p passing) Is(target error) bool { return p.refusal && target == sentinel.ErrRefused }
func (p passing) As(target any) bool {
	w, ok := target.(*waiting)
	if ok = ok && p.asks; ok {
		*w = asking(7)
	}
	return ok
}

// both is of two kinds at once.
type both struct{ asking }

func (both) Unwrap() error { return sentinel.ErrRefused }

// tree draws an error.
func tree(r *rand.Rand, depth int) error {
	switch r.IntN(9 - min(depth, 3)) {
	case 0:
		return errors.New("bare")
	case 1:
		return sentinel.ErrRefused
	case 2:
		return asking(r.IntN(100))
	case 3:
		return passing{r.IntN(2) == 0, r.IntN(2) == 0}
	case 4:
		return both{asking(r.IntN(100))}
	case 5:
		return context.DeadlineExceeded
	case 6:
		return errors.Join(tree(r, depth+1), nil, tree(r, depth+1))
	case 7:
		return fmt.Errorf("two: %w, %w", tree(r, depth+1), tree(r, depth+1))
	}
	return fmt.Errorf("one: %w", tree(r, depth+1))
}

// What one walk finds is what errors.Is and errors.As find.
func TestFindingsAreThoseOfTheErrorsPackage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	refusals, asked := 0, 0
	for range 20_000 {
		err := tree(r, 0)
		var f Findings
		f.Search(err)
		var w waiting
		asks := errors.As(err, &w)
		require.Equal(t, errors.Is(err, sentinel.ErrRefused), f.Refused, "%#v", err)
		require.Equal(t, asks, f.Asked, "%#v", err)
		if asks {
			require.Equal(t, w.RetryAfter(), f.After, "%#v", err)
			asked++
		}
		if f.Refused {
			refusals++
		}
	}
	require.Greater(t, refusals, 1000)
	require.Greater(t, asked, 1000)
}
