package weirhttp

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/inflight"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/throttle"
)

// LogRefusedCalls returns a function for TransportConfig.OnRefusal that logs refusals at level
// Warn, with the context of the request, so that a log handler can add the trace. It logs up to 10
// records per second, and up to one per second of the same breaker or limiter, key and reason. Each
// record has the number of refusals that were not logged since the last. The function can be used
// by several transports. LogRefusedCalls panics if logger is nil.
//
// The attributes are those of the span events of package otelweir, and of weirgrpc.LogRefusedCalls:
//
//   - event.name: weir.refusal.
//   - weir.refusal.reason: open, limited, held (the service asked to wait), throttled or hopeless
//     (the deadline is too near).
//   - weir.breaker.name and weir.breaker.state, or weir.limiter.name.
//   - weir.group.key, if a breaker of a group refused the request.
//   - weir.retry_after: the wait in seconds, if it is known.
//   - weir.host, http.request.method and error.message.
//   - weir.log.left_out: the number of refusals that were not logged.
//
// Paths and headers are not logged, because they may be secret.
func LogRefusedCalls(logger *slog.Logger) func(*http.Request, *RefusedError) {
	log := newRefusalLog(logger, slog.LevelWarn, "call refused")
	return func(req *http.Request, err *RefusedError) {
		c := causeOf(err.Err)
		if c.key == "" {
			c.host = err.Host
		}
		log.write(req, c, knownWait(err.Err, weir.RetryAfter(err.Err)), func() []slog.Attr {
			return []slog.Attr{
				slog.String("weir.host", err.Host), slog.String("http.request.method", req.Method),
				slog.String("error.message", err.Err.Error()),
			}
		})
	}
}

// LogRefusedRequests returns a function for the OnRefusal of a [Limit], [Shed] or [Guard] that logs
// refusals at level Info, with the context of the request, so that a log handler can add the trace.
// It logs as many records as [LogRefusedCalls]. The function can be used by several handlers.
// LogRefusedRequests panics if logger is nil.
//
// The attributes are those of LogRefusedCalls, but instead of weir.host and http.request.method
// they are http.response.status_code, client.address and http.route. weir.limiter.name has the
// names of all policies that refused the request. There is an error.message if there was an error.
// The keys of clients are not logged, because they may be secret.
func LogRefusedRequests(logger *slog.Logger) func(*http.Request, Refusal) {
	log := newRefusalLog(logger, slog.LevelInfo, "request refused")
	return func(r *http.Request, f Refusal) {
		c := cause{reason: "limited", limiter: strings.Join(f.Policies, ",")}
		if len(f.Policies) == 0 {
			c = causeOf(f.Err)
		}
		log.write(r, c, knownWait(f.Err, f.RetryAfter), func() []slog.Attr {
			attrs := []slog.Attr{slog.Int("http.response.status_code", f.Status), slog.String("client.address", clientAddr(r).String())}
			if r.Pattern != "" {
				attrs = append(attrs, slog.String("http.route", r.Pattern))
			}
			if f.Err != nil {
				attrs = append(attrs, slog.String("error.message", f.Err.Error()))
			}
			return attrs
		})
	}
}

// cause says what refused a request. The sampler limits the records of each cause separately.
type cause struct {
	reason, breaker, limiter, key, host string
	state                               breaker.State
}

// causeOf returns the cause of a refusal, in the words of packages otelweir and weirgrpc.
func causeOf(err error) cause {
	if open, ok := errors.AsType[*breaker.OpenError](err); ok {
		return cause{reason: "open", breaker: open.Name, key: open.Key, state: open.State}
	}
	if late, ok := errors.AsType[*weir.HopelessError](err); ok {
		return cause{reason: "hopeless", limiter: late.Name}
	}
	if retry, ok := errors.AsType[*weir.RetryError](err); ok {
		return cause{reason: "retries", limiter: retry.Name}
	}
	if full, ok := errors.AsType[*inflight.FullError](err); ok {
		return cause{reason: "limited", limiter: full.Name}
	}
	if errors.Is(err, throttle.ErrRefused) {
		return cause{reason: "throttled"}
	}
	c := cause{reason: "limited"}
	if limited, ok := errors.AsType[*limiter.LimitedError](err); ok {
		c.limiter = limited.Name
		if limited.Reason == limiter.Held {
			c.reason = "held"
		}
	}
	return c
}

func (c *cause) attrs() []slog.Attr {
	attrs := []slog.Attr{slog.String("event.name", "weir.refusal"), slog.String("weir.refusal.reason", c.reason)}
	switch {
	case c.reason == "open":
		attrs = append(attrs, slog.String("weir.breaker.name", c.breaker), slog.String("weir.breaker.state", string(c.state)))
	case c.limiter != "":
		attrs = append(attrs, slog.String("weir.limiter.name", c.limiter))
	}
	if c.key != "" {
		attrs = append(attrs, slog.String("weir.group.key", c.key))
	}
	return attrs
}

// knownWait returns the wait that a refused caller was told. It returns 0 if the caller was told
// the shortest wait only because the time of the next free slot is not known.
func knownWait(err error, wait time.Duration) time.Duration {
	full, ok := errors.AsType[*inflight.FullError](err)
	if ok && full.Until.IsZero() && wait <= time.Millisecond {
		return 0
	}
	return wait
}

// refusalLog writes a sample of the refusals.
type refusalLog struct {
	logger  *slog.Logger
	level   slog.Level
	message string
	sampler sampler
}

func newRefusalLog(logger *slog.Logger, level slog.Level, message string) *refusalLog {
	if logger == nil {
		panic(errors.New("weirhttp: the logger is nil"))
	}
	return &refusalLog{logger: logger, level: level, message: message}
}

func (l *refusalLog) write(r *http.Request, c cause, wait time.Duration, more func() []slog.Attr) {
	leftOut, ok := l.sampler.sample(c)
	if !ok {
		return
	}
	attrs := c.attrs()
	if wait > 0 && wait != limiter.Never {
		attrs = append(attrs, slog.Float64("weir.retry_after", wait.Seconds()))
	}
	attrs = append(append(attrs, more()...), slog.Int64("weir.log.left_out", leftOut))
	l.logger.LogAttrs(r.Context(), l.level, l.message, attrs...)
}

// sampler chooses the refusals that are logged: up to one per second with the same cause, and up to
// 10 per second. So a breaker that refuses many requests does not hide the refusals of another one,
// and memory is bounded whatever the keys are. Package weirgrpc has the same sampler.
type sampler struct {
	mu      sync.Mutex
	leftOut int64 // since the last record
	recent  [10]struct {
		cause cause
		until time.Time // a second after the record
	}
}

// sample reports whether to log a refusal, and how many were left out since the last that was
// logged.
func (s *sampler) sample(c cause) (leftOut int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, free := time.Now(), -1
	for i := range s.recent {
		switch r := &s.recent[i]; {
		case !now.Before(r.until), r.until.Sub(now) > time.Second: // or the clock has gone back
			free = i
		case r.cause == c:
			s.leftOut++
			return 0, false
		}
	}
	if free < 0 {
		s.leftOut++
		return 0, false
	}
	s.recent[free].cause, s.recent[free].until = c, now.Add(time.Second)
	leftOut, s.leftOut = s.leftOut, 0
	return leftOut, true
}
