// Command breaker makes a call through a breaker of weir.
package main

import (
	"context"
	"fmt"

	"github.com/weir-go/weir/breaker"
)

func main() {
	b := breaker.New("hello", breaker.Config{})
	err := b.Run(context.Background(), func(context.Context) error { return nil })
	fmt.Println("hello", err)
}
