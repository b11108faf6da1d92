package weirgrpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/weirgrpc"
)

// recordedSpan stores its attributes and the last event.
type recordedSpan struct {
	noop.Span
	idle   bool
	set    map[attribute.Key]any
	events []string
}

func (s *recordedSpan) IsRecording() bool { return !s.idle }

func (s *recordedSpan) SetAttributes(attrs ...attribute.KeyValue) {
	for _, a := range attrs {
		s.set[a.Key] = a.Value.AsInterface()
	}
}

func (s *recordedSpan) AddEvent(name string, options ...trace.EventOption) {
	s.events = append(s.events, name)
	c := trace.NewEventConfig(options...)
	s.SetAttributes(c.Attributes()...)
}

func TestRefusalAddsAnEventToTheSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gates := gatePerMethod("shop", weir.Config{Rate: limiter.PerSecond(4), Burst: 1, Breaker: breaker.Config{ConsecutiveFailures: 1, Cooldown: 2 * time.Second}})
		client := newClient(gates)
		down := &service{unary: func(context.Context, string) (string, error) { return "", context.DeadlineExceeded }}
		cc := serve(t, inMemory(), down, nil, client)
		other := serve(t, inMemory(), &service{stream: func(s grpc.ServerStream) error { return send(s, "a") }}, nil, client)
		in := func(s *recordedSpan) context.Context { return trace.ContextWithSpan(t.Context(), s) }

		first := &recordedSpan{set: map[attribute.Key]any{}}
		_, _ = call(in(first), cc, get, "")
		require.Empty(t, first.set, "the call was not refused")
		_, _ = call(in(first), cc, get, "")
		require.Equal(t, map[attribute.Key]any{
			"weir.refused": true, "weir.refusal.reason": "open", "weir.breaker.name": "shop", "weir.breaker.state": "open",
			"weir.group.key": get, "weir.retry_after": 2.0,
		}, first.set)
		_, _ = call(in(first), cc, get, "")
		require.Equal(t, []string{"weir.refusal", "weir.refusal"}, first.events, "one per refusal")

		second := &recordedSpan{set: map[attribute.Key]any{}}
		_, err := openStream(t.Context(), other, chat)
		require.NoError(t, err)
		_, err = openStream(in(second), other, chat)
		require.Error(t, err)
		require.Equal(t, map[attribute.Key]any{
			"weir.refused": true, "weir.refusal.reason": "limited", "weir.limiter.name": "shop", "weir.retry_after": 0.25,
		}, second.set)

		idle := &recordedSpan{idle: true}
		_, err = openStream(in(idle), other, chat)
		require.Error(t, err)
	})
}

func TestLogRefusedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		logger := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		logs := weirgrpc.LogRefusedCalls(logger)
		refusals := 0
		server := weirgrpc.NewServer(weirgrpc.ServerConfig{OnRefusal: func(ctx context.Context, e *weirgrpc.RefusedError) {
			method, _ := grpc.Method(ctx)
			require.Equal(t, method, e.Method)
			refusals++
			logs(ctx, e)
		}}, weirgrpc.Limit(bucket("hits", limiter.PerMinute(1), 1)))
		cc := serve(t, inMemory(), &service{}, server, nil)
		for range 41 {
			_, _ = call(t.Context(), cc, get, "")
		}
		for range 2 {
			time.Sleep(time.Second)
			_, _ = call(t.Context(), cc, get, "")
		}
		require.Equal(t, 42, refusals)

		lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
		require.Len(t, lines, 3, "one record per second of the same limiter")
		for i, want := range map[int]struct{ retryAfter, leftOut float64 }{0: {60, 0}, 1: {59, 39}, 2: {58, 0}} {
			var got map[string]any
			require.NoError(t, json.Unmarshal(lines[i], &got))
			require.Equal(t, map[string]any{
				"level": "INFO", "msg": "call refused", "event.name": "weir.refusal", "rpc.method": get,
				"weir.refusal.reason": "limited", "weir.limiter.name": "hits",
				"error.message":    fmt.Sprintf("limiter hits: no tokens left (limit 1), retry in %v", time.Duration(want.retryAfter)*time.Second),
				"weir.retry_after": want.retryAfter, "weir.log.left_out": want.leftOut,
			}, got)
		}
	})
}

func TestOnRefusalIsCalledBeforeTheCallerGetsTheError(t *testing.T) {
	gate := weir.New("shop", weir.Config{})
	gate.Breaker().Force(breaker.ForcedOpen, "")
	var refusals *weirgrpc.RefusedError
	client := weirgrpc.NewClient(weirgrpc.ForAll(gate), weirgrpc.ClientConfig{OnRefusal: func(_ context.Context, e *weirgrpc.RefusedError) { refusals = e }})
	_, err := call(t.Context(), serve(t, overTCP(t), &service{}, nil, client), get, "")
	require.Equal(t, refusals, err)
	require.ErrorContains(t, refusals.Err, `"shop"`)
	require.Equal(t, time.Second, weir.RetryAfter(err), "the wait is the cooldown")
	require.Equal(t, time.Second, retryAfter(err))
}
