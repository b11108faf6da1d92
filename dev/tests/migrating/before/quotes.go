// Package before is a small service that asks a carrier for the price of a parcel. It has a breaker
// of gobreaker, a limiter of x/time/rate, and an alert of its own.
package before

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
	"golang.org/x/time/rate"
)

//readme:service

// Service answers GET /price with what the carrier answers.
type Service struct {
	Price  func(context.Context) ([]byte, error) // asks the carrier
	Pager  string                                // the URL of a webhook
	Client *http.Client

	limit   *rate.Limiter
	breaker *gobreaker.CircuitBreaker[[]byte]

	calls, failed atomic.Int64 // since the last check
}

// Start prepares the service, and watches its calls until ctx is done.
func (s *Service) Start(ctx context.Context) {
	s.limit = rate.NewLimiter(100, 20)
	s.breaker = gobreaker.NewCircuitBreaker[[]byte](gobreaker.Settings{
		Name:         "carrier",
		Interval:     10 * time.Second,
		BucketPeriod: time.Second,
		Timeout:      5 * time.Second,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return c.Requests >= 20 && float64(c.TotalFailures)/float64(c.Requests) >= 0.5
		},
		IsExcluded: func(err error) bool { return errors.Is(err, context.Canceled) },
		OnStateChange: func(name string, from, to gobreaker.State) {
			slog.Warn("breaker", "name", name, "from", from.String(), "to", to.String())
		},
	})
	go s.watch(ctx)
}

func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.breaker.State() != gobreaker.StateOpen && !s.limit.Allow() {
		http.Error(w, "too many requests", http.StatusTooManyRequests)
		return
	}
	price, err := s.breaker.Execute(func() ([]byte, error) { return s.Price(r.Context()) })
	if !errors.Is(err, context.Canceled) {
		s.calls.Add(1)
		if err != nil {
			s.failed.Add(1)
		}
	}
	switch {
	case errors.Is(err, gobreaker.ErrOpenState), errors.Is(err, gobreaker.ErrTooManyRequests):
		http.Error(w, "the carrier is down", http.StatusServiceUnavailable)
	case err != nil:
		http.Error(w, "the carrier failed", http.StatusBadGateway)
	default:
		_, _ = w.Write(price)
	}
}

// watch pages when more than a tenth of the calls of 30 seconds failed, and when they no longer do.
func (s *Service) watch(ctx context.Context) {
	tick := time.NewTicker(30 * time.Second)
	defer tick.Stop()
	firing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		calls, failed := s.calls.Swap(0), s.failed.Swap(0)
		if calls < 20 {
			continue // too few to say anything
		}
		if bad := float64(failed)/float64(calls) > 0.1; bad != firing {
			if err := s.page(ctx, bad); err != nil {
				slog.Error("page", "error", err) // tried again at the next tick
				continue
			}
			firing = bad
		}
	}
}

func (s *Service) page(ctx context.Context, bad bool) error {
	state := "resolved"
	if bad {
		state = "firing"
	}
	body, err := json.Marshal(map[string]string{"alert": "carrier fails", "state": state})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Pager, strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.Client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return fmt.Errorf("the pager answered %s", resp.Status)
	}
	return nil
}

//readme:end
