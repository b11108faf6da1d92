package prom

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
)

var update = flag.Bool("update", false, "rewrite docs/metrics.md")

const pagePath = "../../docs/metrics.md"

// The page is written by the command
//
//	go test -C exporters/prom . -run TestMetricsPage -update
func TestMetricsPageIsUpToDate(t *testing.T) {
	set, err := read.New(func(*stat.Series) int { return 0 })
	require.NoError(t, err)
	want := metricsPage(set.Instruments())
	if *update {
		require.NoError(t, os.WriteFile(pagePath, []byte(want), 0o644))
	}
	got, err := os.ReadFile(pagePath)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run the test with -update")
}

const pageBeginning = `# Metrics

<!-- Written by exporters/prom/page_test.go: go test -C exporters/prom . -run TestMetricsPage -update -->

These are the metrics that the library exports. OpenTelemetry uses the names as they stand here. The
line below each name is what Prometheus calls it. Attributes are labels in Prometheus, with
underscores for dots.

A counter only grows. An up-down counter grows and shrinks, and can be summed over sources. A gauge
is a value of the moment and cannot be summed. A distribution is a histogram with exponential
buckets.

[exporters/prom/mixin](../exporters/prom/mixin) has a Grafana dashboard and alert rules. This query
shows which breakers are open now:

~~~promql
weir_breaker_state{weir_breaker_state=~"open|forced_open"} == 1
~~~
`

var pageSections = []struct{ prefix, title string }{
	{"weir.breaker.", "Circuit breakers"},
	{"weir.limiter.", "Limiters"},
	{"weir.inflight.", "Calls in flight"},
	{"weir.gate.", "Gates"},
	{"weir.window.", "Windows"},
	{"weir.alert.", "Alert rules"},
	{"weir.notifier.", "Notifiers"},
	{"weir.config.", "Configuration files"},
	{"weir.exporter.", "Exporters"},
}

func metricsPage(instruments []*stat.Instrument) string {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(pageBeginning, "~~~", "```"))
	for _, s := range pageSections {
		fmt.Fprintf(&b, "\n## %s\n\n| metric | kind | unit | attributes | description |\n|---|---|---|---|---|\n", s.title)
		for _, i := range instruments {
			if strings.HasPrefix(i.Name, s.prefix) {
				fmt.Fprintf(&b, "| `%s`<br>`%s` | %s | %s | %s | %s |\n",
					i.Name, metricName(i), i.Kind, quoteWords(i.Unit), quoteWords(i.Attrs...), i.Help+boundsText(i.Bounds))
			}
		}
	}
	return b.String()
}

func quoteWords(words ...string) string {
	if len(words) == 0 || words[0] == "" {
		return ""
	}
	return "`" + strings.Join(words, "`<br>`") + "`"
}

// boundsText lists the bounds of classic histograms.
func boundsText(bounds []float64) string {
	if len(bounds) == 0 {
		return ""
	}
	first, last := math.Log2(bounds[0]), math.Log2(bounds[len(bounds)-1])
	return fmt.Sprintf(" Classic buckets end at the powers of two from 2^%g to 2^%g.", first, last)
}
