package parity_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/otelmetric"
	"github.com/weir-go/weir/exporters/prom"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
	"github.com/weir-go/weir/window"
)

// fixedSource is a source with fixed values.
type fixedSource []fixedValue

type fixedValue struct {
	series *stat.Series
	value  float64
}

func (p fixedSource) Observe(yield func(*stat.Series, float64) bool) {
	for _, one := range p {
		if !yield(one.series, one.value) {
			return
		}
	}
}

func TestEveryInstrumentOfTheLibrary(t *testing.T) {
	var all fixedSource
	families := 0
	for n, i := range catalogue() {
		if i.Kind == stat.Distribution {
			continue // see TestHistograms
		}
		families++
		if i == instrumentNamed("weir.exporter.source_panics") || i == instrumentNamed("weir.exporter.skipped_samples") {
			continue // both exporters show these themselves
		}
		for _, v := range []string{"a", "b"} {
			values := make([]string, len(i.Attrs))
			for k := range values {
				values[k] = v
			}
			all = append(all, fixedValue{i.Series(values...), float64(n) + 0.5})
		}
	}
	requireSameFamilies(t, families, all)
}

func TestInstrumentsOfUsers(t *testing.T) {
	var all fixedSource
	families := 2 // those of the exporters themselves
	for _, unit := range []string{
		"", "1", "{call}", "%", "d", "h", "min", "s", "ms", "us", "ns", "By", "KiBy", "MiBy", "GiBy", "TiBy", "KBy", "MBy", "GBy", "TBy",
		"m", "V", "A", "J", "W", "g", "Cel", "Hz", "m/s", "By/m", "J/h", "g/d", "V/w", "A/mo", "W/y", "{request}/s", "1/min", "/s", "s/{call}",
		"furlong", "furlong/fortnight", "k.m^2", "{a}/{b}", " s ",
	} {
		for k, kind := range kinds {
			name := "shop.n" + strings.Map(plainRune, unit) + "." + string('a'+rune(k))
			i := &stat.Instrument{Name: name, Unit: unit, Help: "Help.", Kind: kind, Attrs: []string{"shop.name", "9th", "a__b-c", "x/y"}}
			all = append(all, fixedValue{i.Series("", "ninth", "abc", "xy"), 7})
			families++
		}
	}
	for n, name := range []string{
		"a.total", "b.total.ratio", "c.ratio.of.things", "d.seconds", "e.time.seconds.spent", "f_under__score_", "g.dash-ed/slash", "H.Upper", "i.per_second",
	} {
		i := &stat.Instrument{Name: name, Unit: []string{"s", "1", "1/s"}[n%3], Help: "Help.", Kind: kinds[n%3]}
		all = append(all, fixedValue{i.Series(), 7})
		families++
	}
	requireSameFamilies(t, families, all)
}

// kinds are the kinds of single values.
var kinds = []stat.Kind{stat.Counter, stat.UpDown, stat.Gauge}

func plainRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
		return r
	}
	return 'Z'
}

func TestAwkwardTextAndValues(t *testing.T) {
	var all fixedSource
	for n, name := range []string{`quo"ted`, "two\nlines", `back\slash`, "bad\xffbyte", strings.Repeat("long", 2500), "", "{}=,", "流量"} {
		s := &stat.Series{Instrument: instrumentNamed("weir.alert.value"), Values: []string{name, "page"}}
		all = append(all, fixedValue{s, []float64{0, -1, math.Inf(1), math.Inf(-1), math.NaN(), 1e300, 1e-300, 1 << 53}[n]})
	}
	requireSameFamilies(t, 3, all)
}

// The test uses the real types after calls of every kind. It runs in a bubble, so that both
// exporters read the same time.
func TestGatesAndBreakers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		payments := weir.New("payments", weir.Config{Rate: limiter.PerSecond(5), Burst: 30})
		users := breaker.New("users", breaker.Config{MinCalls: 5})
		joined := weir.Join("users by gate", weir.Parts{Breaker: users})
		hosts := weir.NewGroup[string]("hosts", weir.GroupConfig{Gate: weir.Config{Rate: limiter.PerSecond(1)}})
		logins := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerMinute(1), Burst: 2, Name: "logins"})
		jobs := window.NewCalls(window.CallsConfig{Name: "jobs", Latency: true})
		fail := errors.New("down")
		for n := range 40 {
			_ = payments.Run(t.Context(), func(context.Context) error { return nil })
			_ = hosts.Get(strconv.Itoa(n%3)).Run(t.Context(), func(context.Context) error { return fail })
			logins.Get("ann").Take(1)
			jobs.Record(window.Outcome(n%3), time.Duration(n)*time.Millisecond)
			_ = joined.Run(t.Context(), func(context.Context) error {
				if n < 10 {
					return nil
				}
				return fail
			})
		}
		monitor := alert.NewMonitor(alert.Config{},
			alert.Rule{Name: "payments errors", Value: alert.FailureRate(payments, 5*time.Minute), When: alert.Above(0.05), MinCalls: 20},
			alert.Rule{Name: "users open", Value: alert.Bool(users.Tripped), When: alert.Above(0), Severity: "page"})
		time.Sleep(1500 * time.Millisecond)
		require.True(t, users.Tripped())
		monitor.Evaluate(time.Now())
		requireSameFamilies(t, 0, payments, users, monitor, joined, payments, hosts, logins, jobs)
		time.Sleep(time.Hour)
		requireSameFamilies(t, 0, joined, monitor, payments, users)
	})
}

func isHistogram(f *dto.MetricFamily) bool { return f.GetType() == dto.MetricType_HISTOGRAM }

// requireSameFamilies fails the test unless both exporters make the same families of the sources,
// except histograms. families is their number, if it is known.
func requireSameFamilies(t *testing.T, families int, sources ...stat.Source) {
	t.Helper()
	direct := prometheus.NewPedanticRegistry()
	require.NoError(t, direct.Register(prom.NewCollector(sources...)))

	around := prometheus.NewRegistry()
	exporter, err := otelprom.New(otelprom.WithRegisterer(around), otelprom.WithoutScopeInfo(), otelprom.WithoutTargetInfo())
	require.NoError(t, err)
	_, err = otelmetric.Register(sdk.NewMeterProvider(sdk.WithReader(exporter)), sources...)
	require.NoError(t, err)

	want, got := gather(t, around), slices.DeleteFunc(gather(t, direct), isHistogram)
	require.Equal(t, familyText(t, want), familyText(t, got), "expected: by otelmetric, actual: by prom")
	require.NotEmpty(t, got)
	if families > 0 {
		require.Len(t, got, families)
	}
}

// gather also drops empty labels, which Prometheus treats as absent, and sorts the metrics by the
// others.
func gather(t *testing.T, g prometheus.Gatherer) []*dto.MetricFamily {
	t.Helper()
	families, err := g.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.Metric {
			m.Label = slices.DeleteFunc(slices.Clone(m.Label), func(l *dto.LabelPair) bool { return l.GetValue() == "" })
		}
		slices.SortFunc(f.Metric, func(a, b *dto.Metric) int { return strings.Compare(labelText(a), labelText(b)) })
	}
	return families
}

// familyText returns one line per sample, with the type and help lines of each family, in order.
func familyText(t *testing.T, families []*dto.MetricFamily) string {
	t.Helper()
	var out bytes.Buffer
	for _, f := range families {
		_, err := expfmt.MetricFamilyToText(&out, f)
		require.NoError(t, err)
	}
	return out.String()
}

func labelText(m *dto.Metric) string {
	var b strings.Builder
	for _, l := range m.Label {
		b.WriteString(l.GetName() + "\xff" + l.GetValue() + "\xff")
	}
	return b.String()
}

func TestMetricsPassTheLinter(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(prom.NewCollector(
		weir.New("payments", weir.Config{Rate: limiter.PerSecond(5)}), breaker.New("users", breaker.Config{}),
		alert.NewMonitor(alert.Config{}, alert.Rule{Name: "never", Value: alert.Bool(func() bool { return false }), When: alert.Above(0)}),
		window.NewCalls(window.CallsConfig{Name: "jobs"}),
		limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.PerMinute(1), Name: "logins"})))
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
}

// catalogue returns the instruments of the library: those of a set without sources.
func catalogue() []*stat.Instrument {
	set, err := read.New(func(*stat.Series) int { return 0 })
	if err != nil {
		panic(err)
	}
	return set.Instruments()
}

// instrumentNamed returns the instrument of the library with the given name.
func instrumentNamed(name string) *stat.Instrument {
	list := catalogue()
	return list[slices.IndexFunc(list, func(i *stat.Instrument) bool { return i.Name == name })]
}
