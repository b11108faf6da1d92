// Command gate makes a call through a gate of weir.
package main

import (
	"context"
	"fmt"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/limiter"
)

func main() {
	g := weir.New("hello", weir.Config{Rate: limiter.PerSecond(10)})
	err := g.Run(context.Background(), func(context.Context) error { return nil })
	fmt.Println("hello", err)
}
