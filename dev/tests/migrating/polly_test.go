package migrating

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
)

// The expected results are those that the source code of Polly documents.
func TestDefaultsOfPolly(t *testing.T) {
	for failures, opens := range map[int]bool{9: false, 10: true} {
		synctest.Test(t, func(t *testing.T) {
			s := throughBreaker(likePolly)
			require.Zero(t, countRefusals(t, s, 100-failures, nil))
			require.Zero(t, countRefusals(t, s, failures, errDown))
			if !opens {
				require.Zero(t, countRefusals(t, s, 1, nil))
				return
			}
			require.Equal(t, 10, countRefusals(t, s, 10, nil))
			time.Sleep(4900 * time.Millisecond)
			require.Equal(t, 1, countRefusals(t, s, 1, nil))
			time.Sleep(100 * time.Millisecond)
			require.Zero(t, countRefusals(t, s, 1, errDown), "the probe")
			require.Equal(t, 1, countRefusals(t, s, 1, nil))
			time.Sleep(5 * time.Second)
			require.Zero(t, countRefusals(t, s, 1, nil), "the probe")
			require.Zero(t, countRefusals(t, s, 99, errDown), "closed, with a new window")
			require.Equal(t, 1, countRefusals(t, s, 2, errDown))
		})
	}
}

func TestTheSamplingDurationOfPolly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := throughBreaker(likePolly)
		require.Zero(t, countRefusals(t, s, 99, errDown))
		time.Sleep(30 * time.Second)
		require.Zero(t, countRefusals(t, s, 99, errDown))
	})
}

func TestAGateIsAPipelineOfPolly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("users", pipeline)
		hangs := func(ctx context.Context, _ int) (*User, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		cached := func(context.Context, int) (*User, error) { return &User{1}, nil }
		began := time.Now()
		for range 1000 {
			go func() { _, _ = pipelineGet(t.Context(), g, hangs, cached, 7) }()
		}
		synctest.Wait()
		user, err := pipelineGet(t.Context(), g, hangs, cached, 7) // more than MaxConcurrent
		require.NoError(t, err)
		require.Equal(t, &User{1}, user)
		require.Zero(t, time.Since(began))

		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Equal(t, breaker.Open, g.Breaker().State(), "timeouts are failures")
		user, err = pipelineGet(t.Context(), g, hangs, cached, 7)
		require.NoError(t, err)
		require.Equal(t, &User{1}, user)
	})
}
