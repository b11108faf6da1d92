package weirhttp

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
)

// LogRefusedCalls returns a function for TransportConfig.OnRefusal that logs refusals at level
// Warn, with the context of the request, so that a log handler can add the trace. It logs up to 10
// records per second. Each record has the number of refusals that were not logged since the last.
// The function can be used by several transports. LogRefusedCalls panics if logger is nil.
//
// The attributes are event.name, which is weir.http.call_refused, weir.host, http.request.method
// and error. weir.breaker.name and weir.breaker.state, or weir.limiter.name, say what refused the
// request. weir.retry_after is the wait in seconds, if it is known. weir.log.left_out is the number
// of refusals that were not logged. Paths and headers are not logged, because they may be secret.
func LogRefusedCalls(logger *slog.Logger) func(*http.Request, *RefusedError) {
	log := newPacedLog(logger, slog.LevelWarn)
	return func(req *http.Request, err *RefusedError) {
		log.write(req, "call refused", func() []slog.Attr {
			return append(err.attrs(), slog.String("event.name", "weir.http.call_refused"),
				slog.String("http.request.method", req.Method), slog.Any("error", err.Err))
		})
	}
}

// attrs returns the attributes of the error. Package otelweir sets the same on spans.
func (e *RefusedError) attrs() []slog.Attr {
	attrs := []slog.Attr{slog.String("weir.host", e.Host)}
	if open, ok := errors.AsType[*breaker.OpenError](e.Err); ok {
		attrs = append(attrs, slog.String("weir.breaker.name", open.Name), slog.String("weir.breaker.state", string(open.State)))
	}
	if limited, ok := errors.AsType[*limiter.LimitedError](e.Err); ok {
		attrs = append(attrs, slog.String("weir.limiter.name", limited.Name))
	}
	if full, ok := errors.AsType[*inflight.FullError](e.Err); ok {
		attrs = append(attrs, slog.String("weir.limiter.name", full.Name))
	}
	if late, ok := errors.AsType[*weir.HopelessError](e.Err); ok {
		attrs = append(attrs, slog.String("weir.limiter.name", late.Name))
	}
	if wait := weir.RetryAfter(e.Err); wait > 0 && wait != limiter.Never {
		attrs = append(attrs, slog.Float64("weir.retry_after", wait.Seconds()))
	}
	return attrs
}

// LogRefusedRequests returns a function for the OnRefusal of a [Limit], [Shed] or [Guard] that logs
// refusals at level Info, with the context of the request, so that a log handler can add the trace.
// It logs up to 10 records per second. Each record has the number of refusals that were not logged
// since the last. The function can be used by several handlers. LogRefusedRequests panics if logger
// is nil.
//
// The attributes are event.name, which is weir.http.limit, http.response.status_code,
// client.address, http.route and error. weir.limiter.name has the names of the policies.
// weir.retry_after is the wait in seconds. weir.log.left_out is the number of refusals that were
// not logged. The keys of clients are not logged, because they may be secret.
func LogRefusedRequests(logger *slog.Logger) func(*http.Request, Refusal) {
	log := newPacedLog(logger, slog.LevelInfo)
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

// pacedLog writes up to 10 records per second.
type pacedLog struct {
	logger  *slog.Logger
	level   slog.Level
	pace    *limiter.TokenBucket
	leftOut atomic.Int64 // since the last record
}

func newPacedLog(logger *slog.Logger, level slog.Level) *pacedLog {
	if logger == nil {
		panic(errors.New("weirhttp: the logger is nil"))
	}
	return &pacedLog{logger: logger, level: level, pace: limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.PerSecond(10)})}
}

func (l *pacedLog) write(r *http.Request, message string, attrs func() []slog.Attr) {
	if !l.pace.Take(1).OK {
		l.leftOut.Add(1)
		return
	}
	l.logger.LogAttrs(r.Context(), l.level, message, append(attrs(), slog.Int64("weir.log.left_out", l.leftOut.Swap(0)))...)
}
