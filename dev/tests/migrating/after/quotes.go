// Package after is the service of package before with weir.
package after

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/alert/notify"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/breaker/breakerlog"
	"github.com/weir-go/weir/limiter"
)

//readme:service

// Service answers GET /price with what the carrier answers.
type Service struct {
	Price  func(context.Context) ([]byte, error) // asks the carrier
	Pager  string                                // the URL of a webhook
	Client *http.Client

	gate *weir.Gate
}

// Start prepares the service, and watches its calls until ctx is done.
func (s *Service) Start(ctx context.Context) {
	s.gate = weir.New("carrier", weir.Config{
		Rate:  limiter.PerSecond(100),
		Burst: 20,
		Breaker: breaker.Config{ // by default half of at least 20 calls within 10s
			Cooldown: 5 * time.Second,
			OnChange: breakerlog.Changes(slog.Default()),
		},
	})
	pager := notify.NewTemplateWebhook(notify.Config{URL: notify.Secret(s.Pager), Transport: s.Client.Transport, Repeat: notify.Off},
		`{"alert": {{.Rule}}, "state": {{.State}}}`)
	monitor := alert.NewMonitor(alert.Config{Notify: []alert.Notifier{pager}}, alert.Rule{
		Name:     "carrier fails",
		Value:    alert.FailureRate(s.gate, 30*time.Second),
		When:     alert.Above(0.1),
		MinCalls: 20,
	})
	go monitor.Run(ctx)
}

func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	price, err := weir.Do(r.Context(), s.gate, s.Price)
	switch {
	case errors.Is(err, limiter.ErrLimited):
		http.Error(w, "too many requests", http.StatusTooManyRequests)
	case errors.Is(err, breaker.ErrOpen):
		http.Error(w, "the carrier is down", http.StatusServiceUnavailable)
	case err != nil:
		http.Error(w, "the carrier failed", http.StatusBadGateway)
	default:
		_, _ = w.Write(price)
	}
}

//readme:end
