package weirconfig_test

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/weirconfig"
)

// A program reads a file and takes its objects by their names.
func Example() {
	if err := os.Setenv("SLACK_TOKEN", "hunter2"); err != nil {
		panic(err)
	}
	if err := serve(context.Background(), "testdata/weir.yaml"); err != nil {
		fmt.Println(err)
	}
	// Output: paid
}

//readme:serve
func serve(ctx context.Context, path string) error {
	file, err := weirconfig.Load(path)
	if err != nil {
		return err
	}
	set, err := weirconfig.New(file, weirconfig.Config{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go set.Monitor().Run(ctx)
	go set.Watch(ctx)
	payments, api := set.Gate("payments"), set.Limit("api")
	_ = api.Handler(http.NotFoundHandler())
	return payments.Run(ctx, pay)
}

//readme:end

func pay(context.Context) error {
	fmt.Println("paid")
	return nil
}

// Each fault of a file is named with its line.
func ExampleParse() {
	_, err := weirconfig.Parse("weir.yaml", []byte(`
gates:
  payments:
    burst: 20
    breaker: {failure_rate: 200%, cooldwn: 2s}
`))
	fmt.Println(err)
	// Output:
	// weir.yaml:4: gates.payments: burst is 20, must be 0 without a rate
	// weir.yaml:5: gates.payments.breaker: cooldwn is unknown, did you mean cooldown?
	// weir.yaml:5: gates.payments.breaker: failure_rate is 2, must be above 0 and at most 1, or off
}

// A program adds functions, which a file cannot have.
func ExampleConfig() {
	file, err := weirconfig.Parse("weir.yaml", []byte("gates: {payments: {breaker: {consecutive_failures: 1}}}"))
	if err != nil {
		fmt.Println(err)
		return
	}
	set, err := weirconfig.New(file, weirconfig.Config{
		Gate: func(name string, c *weir.Config) {
			c.Breaker.OnChange = func(change breaker.Change) { fmt.Println(name, "is", change.To) }
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = set.Gate("payments").Run(context.Background(), func(context.Context) error { return context.DeadlineExceeded })
	// Output: payments is open
}

// A change of a rate is in effect from the next call on.
func ExampleSet_Update() {
	set, err := weirconfig.New(mustParse(`gates: {payments: {rate: 1/h, burst: 1}}`), weirconfig.Config{})
	if err != nil {
		panic(err)
	}
	payments := set.Gate("payments")
	ctx := context.Background()
	_, first := payments.Allow(ctx)
	_, second := payments.Allow(ctx)
	fmt.Println(first == nil, second == nil)
	if err := set.Update(mustParse(`gates: {payments: {}}`)); err != nil {
		panic(err)
	}
	_, third := payments.Allow(ctx)
	fmt.Println(third == nil)
	// Output:
	// true false
	// true
}

func mustParse(text string) *weirconfig.File {
	file, err := weirconfig.Parse("weir.yaml", []byte(text))
	if err != nil {
		panic(err)
	}
	return file
}
