// Command gobreaker makes a call through gobreaker.
package main

import (
	"fmt"

	"github.com/sony/gobreaker/v2"
)

func main() {
	b := gobreaker.NewCircuitBreaker[int](gobreaker.Settings{Name: "hello"})
	_, err := b.Execute(func() (int, error) { return 1, nil })
	fmt.Println("hello", err)
}
