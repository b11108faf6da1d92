package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/throttle"
	"github.com/weir-go/weir/window"
)

// A search service that is called through a throttle, which refuses nothing while the calls
// succeed.
func Example() {
	search := throttle.New("search", throttle.Config{})
	answered, refused := 0, 0
	for range 20 {
		hits, err := throttle.Do(context.Background(), search, func(context.Context) (int, error) {
			return 42, nil // a call to the search service
		})
		switch {
		case errors.Is(err, throttle.ErrRefused):
			refused++
		case err == nil && hits == 42:
			answered++
		}
	}
	fmt.Println(answered, "answered,", refused, "refused")
	// Output: 20 answered, 0 refused
}

func ExampleThrottle() {
	search := throttle.New("search", throttle.Config{})
	down := func(context.Context) error { return errors.New("overloaded") }
	for range 1000 {
		_ = search.Run(context.Background(), down)
	}
	fmt.Println("more than 900 of 1000 calls are refused:", search.Totals().Refused > 900)
	// Output: more than 900 of 1000 calls are refused: true
}

func ExampleDo() {
	search := throttle.New("search", throttle.Config{})
	hits, err := throttle.Do(context.Background(), search, func(context.Context) (int, error) { return 42, nil })
	fmt.Println(hits, err)
	// Output: 42 <nil>
}

func ExampleErrRefused() {
	search := throttle.New("search", throttle.Config{})
	for {
		err := search.Run(context.Background(), func(context.Context) error { return errors.New("overloaded") })
		if errors.Is(err, throttle.ErrRefused) {
			fmt.Println(err)
			fmt.Println("one call is allowed in", weir.RetryAfter(err), "at the latest")
			return
		}
	}
	// Output:
	// throttle "search" refuses a share of the calls because too many fail
	// one call is allowed in 1s at the latest
}

func ExampleConfig() {
	// As in the book, the window is two minutes and refused calls are included.
	c := throttle.Config{Window: 2 * time.Minute, CountRefused: true, MaxRefusal: 1}
	fmt.Println(c.Validate(), throttle.Config{K: 0.5}.Validate())
	// Output: <nil> throttle: K is 0.5, must be finite and at least 1
}

func ExamplePermit() {
	search := throttle.New("search", throttle.Config{})
	permit, err := search.Allow()
	if err != nil {
		return // refused
	}
	fmt.Println(permit.Record(window.Success), permit.Record(window.Success))
	// Output: true false
}
