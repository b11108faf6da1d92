package migrating

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
)

// The expected results are those that the source code of resilience4j documents.
func TestDefaultsOfResilience4j(t *testing.T) {
	for failures, opens := range map[int]bool{49: false, 50: true} {
		synctest.Test(t, func(t *testing.T) {
			s := throughBreaker(likeResilience4j)
			require.Zero(t, countRefusals(t, s, failures, errDown))
			require.Zero(t, countRefusals(t, s, 100-failures, nil), "the rate is not known before the 100th call")
			if !opens {
				require.Zero(t, countRefusals(t, s, 1, nil))
				return
			}
			require.Equal(t, 1, countRefusals(t, s, 1, nil))
			time.Sleep(time.Minute)
			require.Zero(t, countRefusals(t, s, 5, errDown))
			require.Zero(t, countRefusals(t, s, 5, nil))
			require.Equal(t, 1, countRefusals(t, s, 1, nil), "5 of 10 probes failed")
			time.Sleep(time.Minute)
			require.Zero(t, countRefusals(t, s, 4, errDown))
			require.Zero(t, countRefusals(t, s, 100, nil), "4 of 10 probes failed, so it is closed at once")
		})
	}
}

func TestAGateHasThePartsOfResilience4j(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := weir.New("users", likeDecorators)
		began, called, results := time.Now(), 0, make(chan error, 30)
		for range 30 {
			go func() {
				results <- g.Run(t.Context(), func(context.Context) error {
					called++
					time.Sleep(6 * time.Second)
					return nil
				})
			}()
			synctest.Wait()
		}
		require.Equal(t, 25, called)
		for range 5 {
			require.ErrorIs(t, <-results, inflight.ErrFull)
		}
		require.Equal(t, 5*time.Second, time.Since(began), "MaxWait")
		for range 25 {
			require.NoError(t, <-results)
		}
	})
}

func TestAResetIsAChangeOnlyIfTheBreakerWasOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes []breaker.State
		b := breaker.New("users", breaker.Config{OnChange: func(c breaker.Change) { changes = append(changes, c.To) }})
		b.Reset()
		require.Empty(t, changes)
		b.OpenFor(time.Minute)
		b.Reset()
		require.Equal(t, []breaker.State{breaker.Open, breaker.Closed}, changes)
	})
}
