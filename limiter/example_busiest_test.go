package limiter_test

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/limiter"
)

func ExampleBusyKey() {
	jobs := limiter.NewGroup(limiter.GroupConfig[string]{
		Name: "jobs", Rate: limiter.Per(1, time.Hour), Burst: 1,
		ShowKeys: true, // names of jobs are not secret
	})
	for _, job := range []string{"backup", "report", "backup", "backup", "report"} {
		jobs.Get(job).Take(1)
	}
	for _, k := range jobs.Busiest(10) {
		fmt.Printf("%s refused %s %d times\n", k.Limiter, k.Key, k.AtLeast)
	}
	// Output:
	// jobs refused backup 2 times
	// jobs refused report 1 times
}
