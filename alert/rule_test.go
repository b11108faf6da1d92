package alert_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
)

var (
	aRate    = alert.FailureRate(&totals{}, time.Minute)
	aBool    = alert.Bool(func() bool { return true })
	aGauge   = alert.Gauge(func() float64 { return 0 })
	overHalf = alert.Above(0.5)
)

// invalidRules are invalid rules and their errors. TestInvalidRules gives a rule a name unless the
// error is that the name is empty.
var invalidRules = []struct {
	rule alert.Rule
	want string
}{
	{alert.Rule{Value: aRate, When: overHalf}, `rule "": Name is empty`},
	{alert.Rule{Name: "\xff", Value: aRate, When: overHalf}, `Severity "", must be UTF-8`},
	{alert.Rule{When: overHalf}, "Value is not set"},
	{alert.Rule{Value: aRate}, "When is not set"},
	{alert.Rule{Value: aRate, When: alert.Above(math.NaN())}, "When is above NaN, must be finite"},
	{alert.Rule{Value: aRate, When: alert.Above(math.Inf(-1))}, "When is above -Inf, must be finite"},
	{alert.Rule{Value: aRate, When: alert.Above(1)}, "When is above 1, but the failure rate over 1m lies between 0 and 1: the rule could never fire"},
	{alert.Rule{Value: aBool, When: alert.Below(0)}, "When is below 0, but the boolean lies between 0 and 1: the rule could never fire"},
	{alert.Rule{Value: aRate, When: overHalf, Resolve: alert.Below(0)}, "the rule could never resolve"},
	{alert.Rule{Value: aRate, When: overHalf, Resolve: alert.Above(0.2)}, "Resolve is above 0.2, must be finite, point the other way than When, which is above 0.5, and not overlap with it"},
	{alert.Rule{Value: aRate, When: overHalf, Resolve: alert.Below(0.6)}, "Resolve is below 0.6"},
	{alert.Rule{Value: aGauge, When: alert.Below(1), Resolve: alert.Above(0.9)}, "Resolve is above 0.9"},
	{alert.Rule{Value: aRate, When: overHalf, For: -1}, "For is -1ns, must be at least 0"},
	{alert.Rule{Value: aRate, When: overHalf, KeepFiring: -s}, "KeepFiring is -1s, must be at least 0"},
	{alert.Rule{Value: aRate, When: overHalf, MinCalls: -1}, "MinCalls is -1, must be at least 0"},
	{alert.Rule{Value: aRate, When: overHalf, MinBad: -1}, "MinBad is -1, must be at least 0"},
	{alert.Rule{Value: aRate, When: overHalf, NoData: "keep"}, `NoData is "keep", must be "keep-last", "resolve" or "fire"`},
	{alert.Rule{Value: aBool, When: overHalf, MinCalls: 1}, "MinCalls is 1, but the boolean counts no calls"},
	{alert.Rule{Value: alert.Rate(&totals{}, s), When: overHalf, MinBad: 1}, "MinBad is 1, but the calls per second over 1s counts no bad calls"},
	{alert.Rule{Value: aRate, When: overHalf, Labels: map[string]string{"key": "x"}}, `Labels has "key", which is set by the monitor`},
	{alert.Rule{Value: aRate, When: overHalf, Labels: map[string]string{"a-b": "x"}}, `Labels has "a-b", must be up to 128 letters`},
	{alert.Rule{Value: aRate, When: overHalf, Labels: map[string]string{"a": ""}}, `Labels["a"] is "", must be UTF-8 and not empty`},
	{alert.Rule{Value: aRate, When: overHalf, Labels: map[string]string{strings.Repeat("a", 129): "x"}}, "must be up to 128 letters, digits"},
	{alert.Rule{Value: aRate, When: overHalf, Labels: map[string]string{"a": strings.Repeat("x", 1025)}}, `Labels["a"] takes 1025 bytes, must take at most 1024`},
	{alert.Rule{Value: aRate, When: overHalf, Labels: manyLabels(33)}, "Labels has 33 labels, must have at most 32"},
	{alert.Rule{Value: aRate, When: overHalf, Severity: strings.Repeat("x", 1025)}, "Name takes 3 bytes and Severity 1025, must take at most 1024"},
	{alert.Rule{Name: strings.Repeat("x", 1025), Value: aRate, When: overHalf}, "Name takes 1025 bytes and Severity 0, must take at most 1024"},
	{alert.Rule{Value: alert.FailureRate(nil, time.Minute), When: overHalf}, "Value: the source is nil"},
	{alert.Rule{Value: alert.FailureRate(&totals{}, 0), When: overHalf}, "Value: the span is 0s, must be positive"},
	{alert.Rule{Value: alert.FailureRate(&totals{}, 1e6*time.Hour), When: overHalf}, "must lie between 1ms and 720h0m0s"},
	{alert.Rule{Value: alert.BurnRate(&totals{}, 1, time.Hour, time.Minute), When: overHalf}, "Value: slo is 1, must lie between 0 and 1"},
	{alert.Rule{Value: alert.BurnRate(&totals{}, 0.9, time.Minute, time.Hour), When: overHalf}, "Value: the spans are 1m0s and 1h0m0s, the first must be longer"},
	{alert.Rule{Value: alert.BurnRate(&totals{}, 0.9, 0, -1), When: overHalf}, "Value: the span is 0s, must be positive"},
	{alert.Rule{Value: alert.Quantile(nil, 0.5, s), When: overHalf}, "Value: the source is nil"},
	{alert.Rule{Value: alert.Quantile(&timedSource{}, 1.5, s), When: overHalf}, "Value: the quantile is 1.5, must lie between 0 and 1"},
	{alert.Rule{Value: alert.Quantile(&timedSource{}, 0.5, -s), When: overHalf}, "Value: the span is -1s, must be positive"},
	{alert.Rule{Value: alert.Quantile(&timedSource{}, 0.5, s), When: alert.Below(0)}, "the rule could never fire"},
	{alert.Rule{Value: alert.Bool(nil), When: overHalf}, "Value: the function is nil"},
	{alert.Rule{Value: alert.Each[string, int](nil, nil), When: overHalf}, "Value: the members or the function are nil"},
}

func TestInvalidRules(t *testing.T) {
	for _, test := range invalidRules {
		if test.rule.Name == "" && test.want != `rule "": Name is empty` {
			test.rule.Name = "bad"
		}
		require.ErrorContains(t, alert.Config{}.Validate(test.rule), test.want)
		require.PanicsWithError(t, alert.Config{}.Validate(test.rule).Error(), func() { alert.NewMonitor(alert.Config{}, test.rule) })
	}
}

func TestValidateNamesAllFaults(t *testing.T) {
	err := alert.Config{}.Validate(alert.Rule{For: -1, MinBad: -1})
	require.EqualError(t, err, "alert: rule \"\": Name is empty\nalert: rule \"\": For is -1ns, must be at least 0\n"+
		"alert: rule \"\": MinBad is -1, must be at least 0\nalert: rule \"\": Value is not set")
}

func TestInvalidConfigs(t *testing.T) {
	fine := alert.Rule{Name: "fine", Value: alert.Bool(func() bool { return true }), When: alert.Above(0)}
	unnamed := alert.Func("", func(context.Context, alert.Alert) error { return nil })
	for want, c := range map[string]alert.Config{
		"alert: Interval is -1s, must be at least 0":                           {Interval: -s},
		"alert: Budget is -1s, must be at least 0":                             {Budget: -s},
		"alert: Timeout is -1s, must be at least 0":                            {Timeout: -s},
		`alert: Instance is "\xff", must be UTF-8 and take at most 1024 bytes`: {Instance: "\xff"},
		"alert: Notify[0] is nil":                                              {Notify: []alert.Notifier{nil}},
		"alert: Notify[0] has no name":                                         {Notify: []alert.Notifier{unnamed}},
		`alert: Notify[1] has the name "log", which is taken`:                  {Notify: []alert.Notifier{alert.Log(discardLogger()), alert.Log(discardLogger())}},
		"alert: Notify[0] is nil\nalert: Notify[1] is nil":                     {Notify: []alert.Notifier{nil, nil}},
		"alert: Interval is -1s, must be at least 0\nalert: Notify[0] is nil":  {Interval: -s, Notify: []alert.Notifier{nil}},
	} {
		require.EqualError(t, c.Validate(), want)
		require.PanicsWithError(t, want, func() { alert.NewMonitor(c, fine) })
	}
	require.EqualError(t, alert.Config{}.Validate(fine, fine), `alert: rule "fine": Name is not unique`)
	require.NoError(t, alert.Config{}.Validate(fine))
}

func TestNilNotifiersPanic(t *testing.T) {
	require.PanicsWithValue(t, "alert: Log: the logger is nil", func() { alert.Log(nil) })
	require.PanicsWithValue(t, "alert: Func: the function is nil", func() { alert.Func("x", nil) })
}

func TestLogFormat(t *testing.T) {
	var lines []string
	logger := slog.New(slog.NewTextHandler(lineWriter(func(line string) { lines = append(lines, line) }), &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	log := alert.Log(logger)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := alert.Alert{ID: "0123456789abcdef", Rule: "errors", Key: "a.example", Labels: map[string]string{"severity": "page"}, Summary: "rate is 0.4", State: alert.Firing, Value: 0.4, StartsAt: at}
	require.NoError(t, log.Notify(t.Context(), a))
	a.State, a.EndsAt = alert.Resolved, at.Add(time.Minute)
	require.NoError(t, log.Notify(t.Context(), a))
	require.Equal(t, []string{
		`level=WARN msg="alert firing" weir.alert.rule=errors weir.alert.summary="rate is 0.4" weir.alert.value=0.4 weir.alert.starts_at=2026-01-02T03:04:05.000Z weir.group.key=a.example weir.alert.severity=page weir.alert.id=0123456789abcdef` + "\n",
		`level=INFO msg="alert resolved" weir.alert.rule=errors weir.alert.summary="rate is 0.4" weir.alert.value=0.4 weir.alert.starts_at=2026-01-02T03:04:05.000Z weir.alert.ends_at=2026-01-02T03:05:05.000Z weir.group.key=a.example weir.alert.severity=page weir.alert.id=0123456789abcdef` + "\n",
	}, lines)
	require.Equal(t, "errors (a.example): resolved: rate is 0.4", a.String())
}

type lineWriter func(line string)

func (w lineWriter) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}

func TestConditionText(t *testing.T) {
	require.Equal(t, "above 1, below 2, never", alert.Above(1).String()+", "+alert.Below(2).String()+", "+alert.Condition{}.String())
	require.False(t, alert.Condition{}.Holds(0))
	require.False(t, alert.Above(0).Holds(math.NaN()) || alert.Below(0).Holds(math.NaN()))
}

func TestDeliveryErrorUnwraps(t *testing.T) {
	cause := errors.New("cause")
	err := &alert.DeliveryError{Kind: "timeout", Err: cause}
	require.ErrorIs(t, err, cause)
	require.EqualError(t, err, "alert: not delivered: cause")
	require.EqualError(t, &alert.DeliveryError{Kind: "http_5xx"}, "alert: not delivered: http_5xx")
}

// retryAfterError is an error with a RetryAfter method, like those of breakers and limiters.
type retryAfterError time.Duration

func (w retryAfterError) Error() string             { return "come back later" }
func (w retryAfterError) RetryAfter() time.Duration { return time.Duration(w) }

func TestDeliveryErrorRetryAfter(t *testing.T) {
	wrapped := fmt.Errorf("chat: %w", retryAfterError(7*time.Second))
	for name, c := range map[string]struct {
		err  alert.DeliveryError
		want time.Duration
	}{
		"nothing":              {alert.DeliveryError{}, 0},
		"a plain error":        {alert.DeliveryError{Err: errors.New("no")}, 0},
		"a pause":              {alert.DeliveryError{Pause: time.Minute}, time.Minute},
		"the error's":          {alert.DeliveryError{Err: wrapped}, 7 * time.Second},
		"a pause and an error": {alert.DeliveryError{Pause: time.Minute, Err: wrapped}, time.Minute},
	} {
		require.Equal(t, c.want, c.err.RetryAfter(), name)
		require.Equal(t, c.want, weir.RetryAfter(&c.err), name)
	}
}
