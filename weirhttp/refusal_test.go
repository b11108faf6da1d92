package weirhttp_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirhttp"
)

// slowRemote is a limit that answers when the context of the request is done.
type slowRemote struct{}

func (slowRemote) Take(ctx context.Context, _ int) (limiter.Result, error) {
	<-ctx.Done()
	return limiter.Result{}, ctx.Err()
}

// A client that leaves while its request waits was not refused. One whose deadline passes while it
// waits for a slot was.
func TestClientThatLeavesIsNotReportedAsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		middleware func(*testing.T, func(*http.Request, weirhttp.Refusal)) func(http.Handler) http.Handler
		late       int // refusals of requests whose deadline has passed
	}{
		"shed": {func(_ *testing.T, f func(*http.Request, weirhttp.Refusal)) func(http.Handler) http.Handler {
			flight := inflight.New(inflight.Config{Limit: 1, Queue: inflight.Queue{Target: time.Minute}})
			_, _ = flight.TryAcquire(t.Context())
			return weirhttp.Shed(flight, weirhttp.ShedConfig{OnRefusal: f})
		}, 1},
		"limit": {func(_ *testing.T, f func(*http.Request, weirhttp.Refusal)) func(http.Handler) http.Handler {
			return weirhttp.NewLimit(weirhttp.LimitConfig{OnRefusal: f, Policies: []weirhttp.Policy{
				{Name: "remote", Remote: func(string) limiter.Remote { return slowRemote{} }, By: weirhttp.ByNothing},
			}}).Handler
		}, 0},
		"guard": {func(t *testing.T, f func(*http.Request, weirhttp.Refusal)) func(http.Handler) http.Handler {
			gate := weir.New("gate", weir.Config{MaxConcurrent: 1, MaxWait: time.Minute})
			go func() {
				_ = gate.Run(t.Context(), func(context.Context) error { time.Sleep(time.Hour); return nil })
			}()
			synctest.Wait()
			return weirhttp.Guard(weirhttp.ForAll(gate), weirhttp.GuardConfig{OnRefusal: f})
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var refusals []error
				h := c.middleware(t, func(_ *http.Request, f weirhttp.Refusal) { refusals = append(refusals, f.Err) })(okHandler)
				ctx, leave := context.WithCancel(t.Context())
				answer := sendIn(ctx, h)
				leave()
				require.Equal(t, http.StatusServiceUnavailable, <-answer)
				require.Empty(t, refusals)

				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				require.Equal(t, http.StatusServiceUnavailable, <-sendIn(ctx, h))
				require.Len(t, refusals, c.late)
				for _, err := range refusals {
					require.True(t, errors.Is(err, weir.ErrRefused) && errors.Is(err, context.DeadlineExceeded), "%v", err)
				}
				time.Sleep(2 * time.Hour)
			})
		})
	}
}
