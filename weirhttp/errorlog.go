package weirhttp

import (
	"log/slog"
	"net/http"
)

// LogRefusedCalls returns a function for TransportConfig.OnRefusal that writes refusals to the
// logger, as warnings and with the context of the request, so that a handler can relate
// them to a trace. It writes up to ten a second, and with them how many it has left out.
// One function serves any number of transports. LogRefusedCalls panics if the logger is nil.
//
// The attributes are those of [RefusedError.Attrs], http.request.method and the error;
// event.name is weir.http.call_refused. Paths and headers are left out, since they may hold
// what is secret.
func LogRefusedCalls(logger *slog.Logger) func(*http.Request, *RefusedError) {
	log := newPaced(logger, slog.LevelWarn)
	return func(req *http.Request, err *RefusedError) {
		log.write(req, "call refused", func() []slog.Attr {
			return append(err.Attrs(), slog.String("event.name", "weir.http.call_refused"),
				slog.String("http.request.method", req.Method), slog.Any("error", err.Err))
		})
	}
}
