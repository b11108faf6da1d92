package otellog

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
)

// Handler is a [slog.Handler] that emits records of OpenTelemetry. It is made with
// [NewHandler] and safe for concurrent use.
//
// Groups become prefixes of their attributes' keys, divided by dots. Times are
// written by RFC 3339, durations in seconds, and what has no form in OpenTelemetry
// as text.
type Handler struct {
	logger log.Logger
	prefix string // of the groups
	attrs  []attribute.KeyValue
	event  string
}

var _ slog.Handler = (*Handler)(nil)

// eventName is the key of the attribute that becomes the name of the event.
const eventName = "event.name"

// NewHandler returns a handler that emits to the provider. It panics if there is none.
func NewHandler(provider log.LoggerProvider) *Handler {
	if provider == nil {
		panic("otellog: NewHandler: the provider is nil")
	}
	return &Handler{logger: provider.Logger("github.com/weir-go/weir/exporters/otellog")}
}

// Enabled implements [slog.Handler]. It asks the provider.
func (h *Handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.logger.Enabled(ctx, log.EnabledParameters{Severity: severity(level)})
}

// Handle implements [slog.Handler]. It never returns an error.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	all := Handler{prefix: h.prefix, attrs: slices.Clip(h.attrs), event: h.event}
	r.Attrs(func(a slog.Attr) bool {
		all.add(h.prefix, a)
		return true
	})
	var out log.Record
	out.SetTimestamp(r.Time)
	out.SetSeverity(severity(r.Level))
	out.SetSeverityText(r.Level.String())
	out.SetBody(attribute.StringValue(r.Message))
	out.SetEventName(all.event)
	out.AddAttributes(all.attrs...)
	h.logger.Emit(ctx, out)
	return nil
}

// WithAttrs implements [slog.Handler].
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.attrs = slices.Clip(h.attrs)
	for _, a := range attrs {
		next.add(h.prefix, a)
	}
	return &next
}

// WithGroup implements [slog.Handler].
func (h *Handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	next := *h
	next.prefix += name + "."
	return &next
}

// add adds the attribute, or those of the group that it is.
func (h *Handler) add(prefix string, a slog.Attr) {
	v := a.Value.Resolve()
	switch {
	case v.Kind() == slog.KindGroup:
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, member := range v.Group() {
			h.add(prefix, member)
		}
	case a.Equal(slog.Attr{}):
	case prefix+a.Key == eventName:
		h.event = v.String()
	default:
		h.attrs = append(h.attrs, attribute.KeyValue{Key: attribute.Key(prefix + a.Key), Value: value(v)})
	}
}

func value(v slog.Value) attribute.Value {
	switch v.Kind() {
	case slog.KindBool:
		return attribute.BoolValue(v.Bool())
	case slog.KindInt64:
		return attribute.Int64Value(v.Int64())
	case slog.KindUint64:
		if n := v.Uint64(); n <= math.MaxInt64 {
			return attribute.Int64Value(int64(n))
		}
	case slog.KindFloat64:
		return attribute.Float64Value(v.Float64())
	case slog.KindDuration:
		return attribute.Float64Value(v.Duration().Seconds())
	case slog.KindTime:
		return attribute.StringValue(v.Time().Format(time.RFC3339Nano))
	case slog.KindAny:
		return attribute.StringValue(fmt.Sprintf("%+v", v.Any()))
	default:
	}
	return attribute.StringValue(v.String())
}

// severity translates levels, which lie as far from each other as severities do.
func severity(l slog.Level) log.Severity {
	s := int(l) + int(log.SeverityInfo)
	return log.Severity(min(max(s, int(log.SeverityTrace1)), int(log.SeverityFatal4)))
}
