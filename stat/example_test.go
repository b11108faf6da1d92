package stat_test

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/stat"
)

// jobs is an instrument of the user. Exporters show it next to those of weir.
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

// A queue exports how many jobs are done.
func Example() {
	mail := &queue{done: 3, series: jobs.Series("mail")}
	for series, value := range mail.Observe { // as an exporter does
		fmt.Println(series.Instrument.Name, series.Values, value)
	}
	// Output: shop.jobs [mail] 3
}

func ExampleSource() {
	var source stat.Source = &queue{done: 3, series: jobs.Series("mail")}
	for s, value := range source.Observe {
		fmt.Println(s.Instrument.Name, s.Values, value)
	}
	// Output: shop.jobs [mail] 3
}

func ExampleInstrument() {
	fmt.Println(jobs.Name, jobs.Kind, jobs.Unit, jobs.Attrs)
	// Output: shop.jobs counter {job} [shop.queue]
}

func ExampleSeries() {
	s := jobs.Series("mail")
	fmt.Println(s.Instrument.Name, s.Values)
	// Output: shop.jobs [mail]
}

func ExampleKind() {
	length := &stat.Instrument{Name: "shop.queue.length", Kind: stat.UpDown}
	fmt.Println(length.Name, "is an", length.Kind)
	// Output: shop.queue.length is an up-down counter
}

// mailer is a source with a distribution.
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

func ExampleExemplar() {
	h := stat.Histogram{Schema: 0, Offset: -3, Counts: []int64{2}, Sum: 0.4, Exemplars: []stat.Exemplar{
		{Value: 0.2, Time: time.Now(), TraceID: "4bf92f3577b34da6a3ce929d0e0e4736"},
	}}
	fmt.Println(h.Exemplars[0].Value, h.Exemplars[0].TraceID)
	// Output: 0.2 4bf92f3577b34da6a3ce929d0e0e4736
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
