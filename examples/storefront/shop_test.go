package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// openShop returns a shop without a guard. Its service hangs from the first second to the sixtieth.
func openShop(t *testing.T, drops bool) *shop {
	t.Helper()
	now := time.Now()
	service := newService(outage{from: now.Add(time.Second), to: now.Add(time.Minute)}, drops)
	t.Cleanup(func() { endService(func() { close(service.queue) }) })
	return newShop(service, noGuard)
}

// endService closes a queue, and returns when the workers have ended.
func endService(closeQueue func()) {
	closeQueue()
	time.Sleep(time.Hour) // of the bubble
}

func TestAServiceAnswersUntilItHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, false)
		start := time.Now()
		require.NoError(t, s.charge(t.Context()))
		require.Equal(t, answerTime, time.Since(start))
		time.Sleep(time.Second)
		require.ErrorIs(t, s.charge(t.Context()), context.DeadlineExceeded)
		require.Equal(t, 1, s.read().sent, "only the call that was sent while the service hangs")
	})
}

func TestAPaymentHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, false)
		time.Sleep(time.Second)
		start := time.Now()
		for range connections + 1 {
			go s.serve(t.Context())
		}
		synctest.Wait()
		require.Equal(t, figures{waiting: connections + 1, mostWaiting: connections + 1, sent: connections}, s.read())
		time.Sleep(timeout)
		synctest.Wait()
		require.Zero(t, s.read().waiting, "a call that waits for a connection ends with the others")
		require.Equal(t, connections+1, s.read().failed)
		require.Equal(t, timeout, time.Since(start))
	})
}

func TestAServiceWorksForCallersThatHaveGoneUnlessItDropsThem(t *testing.T) {
	for drops, want := range map[bool]time.Duration{false: 11 * answerTime, true: answerTime} {
		synctest.Test(t, func(t *testing.T) {
			s := openShop(t, drops)
			time.Sleep(time.Second)
			gone, leave := context.WithCancel(t.Context())
			for range 10 * workers {
				go func() { _ = s.service.charge(gone) }()
			}
			synctest.Wait()
			leave()
			time.Sleep(time.Until(s.service.outage.to))
			start := time.Now()
			require.NoError(t, s.service.charge(t.Context()))
			require.Equal(t, want, time.Since(start))
		})
	}
}

func TestAServiceWithAFullQueueRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, false)
		time.Sleep(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		for range workers + queueSize {
			go func() { _ = s.service.charge(ctx) }()
			synctest.Wait()
		}
		require.ErrorIs(t, s.charge(ctx), errBusy)
		cancel()
	})
}

func TestAFailedPaymentEndsTheRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openShop(t, false)
		start := time.Now()
		for range wellRow {
			s.leave(nil, start)
		}
		require.True(t, s.read().isWell())
		s.leave(errors.New("declined"), start)
		require.False(t, s.read().isWell())
		s.leave(nil, start.Add(time.Second))
		s.leave(nil, start.Add(time.Minute))
		require.Equal(t, start.Add(time.Second), s.read().paidSince)
	})
}
