package read_test

import (
	"fmt"
	"strings"

	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/stat/read"
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

// Two queues are printed, each under its own name.
func Example() {
	set, err := read.New(func(s *stat.Series) string { return s.Instrument.Name + " " + strings.Join(s.Values, ",") },
		&queue{done: 3, series: jobs.Series("mail")}, &queue{done: 5, series: jobs.Series("paper")})
	if err != nil {
		fmt.Println(err)
		return
	}
	for name, value := range set.Observe {
		if strings.HasPrefix(name, "shop.") {
			fmt.Println(name, value)
		}
	}
	// Unordered output:
	// shop.jobs mail 3
	// shop.jobs paper 5
}

// A set is the core of an exporter. This one prints, and formats the name of each series only once.
func ExampleSet() {
	mail := &queue{done: 3, series: jobs.Series("mail")}
	set, err := read.New(func(s *stat.Series) string {
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
	// stat: two different series are shop.jobs{shop.queue="mail"}: each source needs a name of its own
	// shop.jobs{mail} 3
	// weir.exporter.source_panics{} 0
	// weir.exporter.skipped_samples{duplicate} 0
	// weir.exporter.skipped_samples{unknown} 0
	// weir.exporter.skipped_samples{malformed} 0
}
