package browser_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// shop is a program with traffic whose services fail on demand.
type shop struct {
	payments *weir.Gate
	search   *breaker.Breaker
	monitor  *alert.Monitor
	down     atomic.Bool // search

	sources []stat.Source
}

// hostileName is a name with markup, line breaks, quotes and characters that reverse the direction
// of text.
const hostileName = "<img src=x onerror=alert(1)>\"quoted\"\n'and' broken \u202Ereversed"

func newShop() *shop {
	s := &shop{
		payments: weir.New("payments", weir.Config{
			Rate: limiter.PerSecond(150), Burst: 30, Breaker: breaker.Config{Latency: true},
		}),
		search: breaker.New("search", breaker.Config{Latency: true, Cooldown: 2 * time.Second}),
	}
	s.monitor = alert.NewMonitor(alert.Config{Interval: 200 * time.Millisecond, Notify: []alert.Notifier{alert.Log(slog.New(slog.DiscardHandler))}},
		alert.Rule{Name: "search is open", Severity: "page", Value: alert.Bool(s.search.Tripped), When: alert.Above(0)},
		alert.Rule{Name: "payments fail", Severity: "ticket", Value: alert.FailureRate(s.payments, time.Minute), When: alert.Above(0.5), MinCalls: 20},
	)
	export := breaker.New("legacy-export", breaker.Config{})
	export.Force(breaker.ForcedOpen, "")
	shadow := breaker.New("recommendations", breaker.Config{})
	shadow.Force(breaker.Shadow, "")
	signup := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(1), Burst: 1, Name: "signup"})
	signup.Take(1)
	s.sources = []stat.Source{s.payments, s.search, export, shadow, signup, breaker.New(hostileName, breaker.Config{}), s.monitor}
	return s
}

// startCallers starts callers that run until the test ends.
func (s *shop) startCallers(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var work sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		work.Wait()
	})
	work.Go(func() { s.monitor.Run(ctx) })
	for range 3 {
		work.Go(func() { s.sell(ctx) })
	}
}

func (s *shop) sell(ctx context.Context) {
	tick := time.NewTicker(15 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		_ = s.payments.Run(ctx, func(context.Context) error { return failIf(n%40 == 0) })
		_ = s.search.Run(ctx, func(context.Context) error { return failIf(s.down.Load()) })
	}
}

func failIf(is bool) error {
	for range rand.IntN(200_000) { // a random time between calls
	}
	if is {
		return errors.New("the service is down")
	}
	return nil
}

// manySources returns a large number of sources, each with the series of a breaker.
func manySources(n int) []stat.Source {
	sources := make([]stat.Source, n)
	for i := range sources {
		sources[i] = breaker.New(fmt.Sprintf("service-%04d", i), breaker.Config{})
	}
	return sources
}
