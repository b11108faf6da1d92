package detach_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet/internal/detach"
)

func TestDoReturnsWhatTheFunctionReturns(t *testing.T) {
	no := errors.New("no")
	for _, ctx := range []context.Context{context.WithoutCancel(t.Context()), t.Context()} {
		n, err := detach.Do(ctx, func() (int, error) { return 5, no })
		require.Equal(t, 5, n)
		require.Equal(t, no, err)
	}
}

func TestACallerLeavesWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		var ended atomic.Int64
		_, err := detach.Do(ctx, func() (int, error) {
			time.Sleep(5 * time.Second)
			ended.Store(int64(time.Since(began)))
			panic("after the caller has left")
		})
		require.Equal(t, context.DeadlineExceeded, err)
		require.Equal(t, time.Second, time.Since(began))
		time.Sleep(5 * time.Second)
		require.Equal(t, 5*time.Second, time.Duration(ended.Load()), "the function goes on")
	})
}

func TestPanicsAndGoexitReachTheCaller(t *testing.T) {
	require.PanicsWithValue(t, "no", func() {
		_, _ = detach.Do(t.Context(), func() (int, error) { panic("no") })
	})
	var g sync.WaitGroup
	ended := true
	g.Go(func() {
		_, _ = detach.Do(t.Context(), func() (int, error) { runtime.Goexit(); return 0, nil })
		ended = false
	})
	g.Wait()
	require.True(t, ended)
}
