package stat_test

import (
	"fmt"
	"strings"

	"github.com/weir-go/weir/stat"
)

// jobs is an instrument of your own, for exporters to show beside weir's.
var jobs = &stat.Instrument{
	Name: "shop.jobs", Unit: "{job}", Kind: stat.Counter, Attrs: []string{"shop.queue"},
	Help: "Jobs done.",
}

type queue struct {
	done   float64
	series *stat.Series
}

func (q *queue) Observe(yield func(*stat.Series, float64) bool) {
	yield(q.series, q.done)
}

func ExampleSource() {
	var source stat.Source = &queue{done: 3, series: jobs.Series("mail")}
	for s, value := range source.Observe {
		fmt.Println(s.Instrument.Name, s.Values, value)
	}
	// Output: shop.jobs [mail] 3
}

func ExampleInstrument() {
	fmt.Println(stat.BreakerCalls.Name, stat.BreakerCalls.Unit, stat.BreakerCalls.Attrs)
	// Output: weir.breaker.calls {call} [weir.breaker.name weir.breaker.outcome weir.group.key]
}

func ExampleSeries() {
	s := stat.BreakerCalls.Series("payments", "failure", "")
	fmt.Println(s.Instrument.Kind, s.Values)
	// Output: counter [payments failure ]
}

func ExampleKind() {
	for _, i := range stat.Catalogue()[:2] {
		fmt.Println(i.Name, "is a", i.Kind)
	}
	// Output:
	// weir.breaker.state is a up-down counter
	// weir.breaker.transitions is a counter
}

// An exporter of your own: here one that prints, and that writes the name of a
// series once, however often it prints.
func ExampleSet() {
	mail := &queue{done: 3, series: jobs.Series("mail")}
	set, err := stat.NewSet(func(s *stat.Series) string {
		return s.Instrument.Name + "{" + strings.Join(s.Values, ",") + "}"
	}, mail)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(set.Add(&queue{done: 5, series: jobs.Series("mail")}))

	for name, value := range set.Observe {
		fmt.Println(name, value)
	}
	// Output:
	// stat: two different series are shop.jobs{shop.queue="mail"}: sources need names of their own
	// shop.jobs{mail} 3
	// weir.exporter.source_panics{} 0
	// weir.exporter.skipped_samples{duplicate} 0
	// weir.exporter.skipped_samples{unknown} 0
	// weir.exporter.skipped_samples{malformed} 0
}

// mailer is a source with a distribution beside its figures.
type mailer struct {
	queue
	sizes *stat.Series
}

var sizes = &stat.Instrument{
	Name: "shop.mail.size", Unit: "By", Kind: stat.Distribution, Attrs: []string{"shop.queue"},
	Help: "Size of mails.", Bounds: []float64{1 << 10, 1 << 15, 1 << 20},
}

func (m *mailer) Histograms(yield func(*stat.Series, stat.Histogram) bool) {
	// Two mails of up to 1 kB and one of up to 2 kB.
	yield(m.sizes, stat.Histogram{Schema: 0, Offset: 10, Counts: []int64{2, 1}, Sum: 3000, Max: 1200})
}

func ExampleHistogramSource() {
	var source stat.HistogramSource = &mailer{queue{3, jobs.Series("mail")}, sizes.Series("mail")}
	for s, h := range source.Histograms {
		fmt.Println(s.Instrument.Name, h.Count(), h.Sum)
	}
	// Output: shop.mail.size 3 3000
}

func ExampleHistogram() {
	h := stat.Histogram{Schema: 0, Offset: 10, Counts: []int64{2, 1}, Sum: 3000}
	for bound, n := range h.Below([]float64{512, 1024, 2048}) {
		fmt.Println(n, "up to", bound)
	}
	// Output:
	// 0 up to 512
	// 2 up to 1024
	// 3 up to 2048
}
