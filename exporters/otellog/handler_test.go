package otellog_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/slogtest"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/log/noop"
	sdk "go.opentelemetry.io/otel/sdk/log"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/breaker/breakerlog"
	"github.com/weir-go/weir/exporters/otellog"
)

// recordKeeper is a processor that keeps every record.
type recordKeeper struct {
	mu      sync.Mutex
	records []sdk.Record
}

func (k *recordKeeper) OnEmit(_ context.Context, r *sdk.Record) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.records = append(k.records, r.Clone())
	return nil
}

func (k *recordKeeper) Enabled(_ context.Context, p sdk.EnabledParameters) bool {
	return p.Severity != log.SeverityTrace
}
func (k *recordKeeper) Shutdown(context.Context) error   { return nil }
func (k *recordKeeper) ForceFlush(context.Context) error { return nil }

func newHandler() (slog.Handler, *recordKeeper) {
	k := &recordKeeper{}
	return otellog.NewHandler(sdk.NewLoggerProvider(sdk.WithProcessor(k))), k
}

func attributesOf(r *sdk.Record) map[string]any {
	m := map[string]any{}
	r.WalkAttributes(func(kv attribute.KeyValue) bool {
		m[string(kv.Key)] = kv.Value.AsInterface()
		return true
	})
	return m
}

// TestHandlerPassesSlogtest runs the conformance suite of the standard library.
func TestHandlerPassesSlogtest(t *testing.T) {
	h, k := newHandler()
	require.NoError(t, slogtest.TestHandler(h, func() (results []map[string]any) {
		for _, r := range k.records {
			m := map[string]any{slog.MessageKey: r.Body().AsString(), slog.LevelKey: r.SeverityText()}
			if !r.Timestamp().IsZero() {
				m[slog.TimeKey] = r.Timestamp()
			}
			for key, value := range attributesOf(&r) {
				setNested(m, strings.Split(key, "."), value)
			}
			results = append(results, m)
		}
		return results
	}))
}

func setNested(m map[string]any, path []string, value any) {
	if len(path) == 1 {
		m[path[0]] = value
		return
	}
	if m[path[0]] == nil {
		m[path[0]] = map[string]any{}
	}
	setNested(m[path[0]].(map[string]any), path[1:], value)
}

func TestValuesKeepTheirTypes(t *testing.T) {
	h, k := newHandler()
	at := time.Date(2026, 9, 1, 12, 0, 0, 5, time.UTC)
	slog.New(h).Info("x", "s", "text", "b", true, "i", -3, "u", uint64(3), "big", uint64(math.MaxUint64), "f", 2.5,
		"d", 1500*time.Millisecond, "t", at, "err", errors.New("down"), "struct", struct{ A int }{1}, "nil", nil,
		"bytes", []byte{0xff}, "list", []string{"a", "b"})
	require.Equal(t, map[string]any{
		"s": "text", "b": true, "i": int64(-3), "u": int64(3), "big": "18446744073709551615", "f": 2.5,
		"d": 1.5, "t": "2026-09-01T12:00:00.000000005Z", "err": "down", "struct": "{A:1}", "nil": "<nil>",
		"bytes": []byte{0xff}, "list": []string{"a", "b"},
	}, attributesOf(&k.records[0]))
}

func TestLevelsBecomeSeverities(t *testing.T) {
	h, k := newHandler()
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError, slog.LevelError + 1, 99, -99} {
		slog.New(h).Log(t.Context(), level, "x")
	}
	got := map[string]log.Severity{}
	for _, r := range k.records {
		got[r.SeverityText()] = r.Severity()
	}
	require.Equal(t, map[string]log.Severity{
		"DEBUG": log.SeverityDebug, "INFO": log.SeverityInfo, "WARN": log.SeverityWarn, "ERROR": log.SeverityError,
		"ERROR+1": log.SeverityError2, "ERROR+91": log.SeverityFatal4,
	}, got, "the lowest level is not enabled")
}

func TestHandlersDoNotShareAttributes(t *testing.T) {
	h, k := newHandler()
	common := slog.New(h).With("a", 1, "b", 2, "z", 0)
	first, second := common.With("c", 3), common.With("d", 4)
	second.Info("x", "e", 5)
	first.Info("x")
	require.Equal(t, map[string]any{"a": int64(1), "b": int64(2), "z": int64(0), "c": int64(3)}, attributesOf(&k.records[1]))
	require.Equal(t, map[string]any{"a": int64(1), "b": int64(2), "z": int64(0), "d": int64(4), "e": int64(5)}, attributesOf(&k.records[0]))
}

func TestEventName(t *testing.T) {
	h, k := newHandler()
	slog.New(h).Info("x", "event.name", "shop.sold", "event", "other")
	slog.New(h).With("event.name", "shop.open").Info("x")
	slog.New(h).Info("x", slog.Group("event", "name", "shop.closed"))
	slog.New(h).WithGroup("g").Info("x", "event.name", "of the group")
	var got []string
	for _, r := range k.records {
		got = append(got, r.EventName())
	}
	require.Equal(t, []string{"shop.sold", "shop.open", "shop.closed", "of the group"}, got)
	require.Equal(t, map[string]any{"event": "other"}, attributesOf(&k.records[0]))
}

func TestTransitionsAndAlertsAreLogged(t *testing.T) {
	h, k := newHandler()
	name := "quo\"ted\n" + strings.Repeat("long", 2500)
	b := breaker.New(name, breaker.Config{OnChange: breakerlog.Changes(slog.New(h))})
	b.Force(breaker.ForcedOpen, "")
	require.NoError(t, alert.Log(slog.New(h)).Notify(t.Context(), alert.Alert{Rule: "errors", Labels: map[string]string{"severity": "page"}, Value: 0.5}))

	change := k.records[0]
	require.Equal(t, "weir.breaker.transition", change.EventName())
	require.Equal(t, "breaker forced_open", change.Body().AsString())
	require.Equal(t, log.SeverityWarn, change.Severity())
	require.Equal(t, "github.com/weir-go/weir/exporters/otellog", change.InstrumentationScope().Name)
	got := attributesOf(&change)
	require.Equal(t, name, got["weir.breaker.name"])
	require.Equal(t, "forced_open", got["weir.breaker.state"])
	require.Equal(t, "closed", got["weir.breaker.previous_state"])
	require.EqualValues(t, 1, got["weir.breaker.seq"])

	require.Equal(t, "errors", attributesOf(&k.records[1])["weir.alert.rule"])
	require.Equal(t, 0.5, attributesOf(&k.records[1])["weir.alert.value"])
}

func TestNilProviderPanics(t *testing.T) {
	require.PanicsWithValue(t, "otellog: NewHandler: the provider is nil", func() { otellog.NewHandler(nil) })
	require.False(t, otellog.NewHandler(noop.NewLoggerProvider()).Enabled(t.Context(), slog.LevelError))
}

// discardProcessor is a processor that keeps no record.
type discardProcessor struct{ recordKeeper }

func (*discardProcessor) OnEmit(context.Context, *sdk.Record) error { return nil }

func TestHandlerKeepsNoReferences(t *testing.T) {
	h := otellog.NewHandler(sdk.NewLoggerProvider(sdk.WithProcessor(&discardProcessor{})))
	values := make([]weak.Pointer[[64]byte], 100)
	for i := range values {
		value := new([64]byte)
		slog.New(h).With("with", value).WithGroup("group").Info("x", "value", value)
		values[i] = weak.Make(value)
	}
	runtime.GC()
	for _, v := range values {
		require.Nil(t, v.Value(), "logged values are garbage collected")
	}
	runtime.KeepAlive(h)
}
