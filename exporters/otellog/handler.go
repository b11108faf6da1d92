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

// eventName is the key of the attribute that becomes the name of the event.
const eventName = "event.name"

// NewHandler returns a handler that emits each log record as an OpenTelemetry record to the
// provider. It is safe for concurrent use, and its Handle method never returns an error. NewHandler
// panics if provider is nil.
//
// An attribute event.name, in whatever group, becomes the name of the event. A group becomes a
// prefix of its other attributes' keys, separated by a dot. Times are written as in RFC 3339 and
// durations in seconds. Values that have no form in OpenTelemetry are written as text.
func NewHandler(provider log.LoggerProvider) slog.Handler {
	if provider == nil {
		panic("otellog: NewHandler: the provider is nil")
	}
	return &handler{logger: provider.Logger("github.com/weir-go/weir/exporters/otellog")}
}

// handler implements [slog.Handler].
type handler struct {
	logger log.Logger
	prefix string // of the groups
	attrs  []attribute.KeyValue
	event  string
}

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.logger.Enabled(ctx, log.EnabledParameters{Severity: severity(level)})
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	all := handler{prefix: h.prefix, attrs: slices.Clip(h.attrs), event: h.event}
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

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.attrs = slices.Clip(h.attrs)
	for _, a := range attrs {
		next.add(h.prefix, a)
	}
	return &next
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	next := *h
	next.prefix += name + "."
	return &next
}

// add adds an attribute, or the attributes of a group.
func (h *handler) add(prefix string, a slog.Attr) {
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
	case a.Key == eventName, prefix+a.Key == eventName:
		h.event = v.String()
	default:
		h.attrs = append(h.attrs, attribute.KeyValue{Key: attribute.Key(prefix + a.Key), Value: attributeValue(v)})
	}
}

func attributeValue(v slog.Value) attribute.Value {
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
		switch list := v.Any().(type) {
		case []byte:
			return attribute.ByteSliceValue(list)
		case []string:
			return attribute.StringSliceValue(list)
		}
		return attribute.StringValue(fmt.Sprintf("%+v", v.Any()))
	default:
	}
	return attribute.StringValue(v.String())
}

// severity converts a level. The number of a severity is that of the level plus a constant.
func severity(l slog.Level) log.Severity {
	s := int(l) + int(log.SeverityInfo)
	return log.Severity(min(max(s, int(log.SeverityTrace1)), int(log.SeverityFatal4)))
}
