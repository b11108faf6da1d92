package weirhttp

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
)

// LogRefusedCalls returns a function for TransportConfig.OnRefusal that writes refusals to the
// logger, as warnings and with the context of the request, so that a handler can relate
// them to a trace. It writes up to ten a second, and with them how many it has left out.
// One function serves any number of transports. LogRefusedCalls panics if the logger is nil.
//
// The attributes are weir.host; what refused the request, as weir.breaker.name and weir.breaker.state,
// or as weir.limiter.name; weir.retry_after in seconds, if it is known; http.request.method; error; and
// event.name, which is weir.http.call_refused. Paths and headers are not logged, since they may be
// secret.
func LogRefusedCalls(logger *slog.Logger) func(*http.Request, *RefusedError) {
	log := newPaced(logger, slog.LevelWarn)
	return func(req *http.Request, err *RefusedError) {
		log.write(req, "call refused", func() []slog.Attr {
			return append(err.attrs(), slog.String("event.name", "weir.http.call_refused"),
				slog.String("http.request.method", req.Method), slog.Any("error", err.Err))
		})
	}
}

// attrs returns the facts of the refusal. Package otelweir sets the same on spans.
func (e *RefusedError) attrs() []slog.Attr {
	attrs := []slog.Attr{slog.String("weir.host", e.Host)}
	if open, ok := errors.AsType[*breaker.OpenError](e.Err); ok {
		attrs = append(attrs, slog.String("weir.breaker.name", open.Name), slog.String("weir.breaker.state", string(open.State)))
	}
	if limited, ok := errors.AsType[*limiter.LimitedError](e.Err); ok {
		attrs = append(attrs, slog.String("weir.limiter.name", limited.Name))
	}
	if wait := weir.RetryAfter(e.Err); wait > 0 && wait != limiter.Never {
		attrs = append(attrs, slog.Float64("weir.retry_after", wait.Seconds()))
	}
	return attrs
}
