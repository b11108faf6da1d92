package weirhttp

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/weir-go/weir/limiter"
)

// LogRefusedRequests returns an OnRefusal that logs refusals at level Info, with the context of the
// request, so that a handler can relate them to a trace. It writes up to ten records a second, and says
// in each how many it has left out. One function serves any number of limits. LogRefusedRequests panics
// if the logger is nil.
//
// The attributes are named as in OpenTelemetry where it has a name: http.response.status_code,
// client.address, http.route, weir.limiter.name, weir.retry_after in seconds, error, and event.name,
// which is weir.http.limit. The keys of clients are not logged, since they may be secret.
func LogRefusedRequests(logger *slog.Logger) func(*http.Request, Refusal) {
	log := newPaced(logger, slog.LevelInfo)
	return func(r *http.Request, f Refusal) {
		log.write(r, "request refused", func() []slog.Attr {
			attrs := []slog.Attr{slog.Int("http.response.status_code", f.Status), slog.String("client.address", clientAddr(r).String())}
			if r.Pattern != "" {
				attrs = append(attrs, slog.String("http.route", r.Pattern))
			}
			return append(append(attrs, f.attrs()...), slog.String("event.name", "weir.http.limit"))
		})
	}
}

// paced writes up to ten records a second.
type paced struct {
	logger *slog.Logger
	level  slog.Level
	pace   *limiter.TokenBucket
	left   atomic.Int64 // out, since the last record
}

func newPaced(logger *slog.Logger, level slog.Level) *paced {
	if logger == nil {
		panic(errors.New("weirhttp: the logger is nil"))
	}
	return &paced{logger: logger, level: level, pace: limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(10)})}
}

func (p *paced) write(r *http.Request, message string, facts func() []slog.Attr) {
	if !p.pace.Take(1).OK {
		p.left.Add(1)
		return
	}
	p.logger.LogAttrs(r.Context(), p.level, message, append(facts(), slog.Int64("weir.log.left_out", p.left.Swap(0)))...)
}

// attrs returns the facts of the refusal.
func (f Refusal) attrs() (attrs []slog.Attr) {
	if f.RetryAfter > 0 && f.RetryAfter != limiter.Never {
		attrs = append(attrs, slog.Float64("weir.retry_after", f.RetryAfter.Seconds()))
	}
	if len(f.Policies) > 0 {
		attrs = append(attrs, slog.String("weir.limiter.name", strings.Join(f.Policies, ",")))
	}
	if f.Err != nil {
		attrs = append(attrs, slog.Any("error", f.Err))
	}
	return attrs
}
