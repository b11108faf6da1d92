// Program runs two simulations at once outside a test, and panics if they differ.
package main

import (
	"fmt"
	"time"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

func main() {
	world := sim.World{
		Service: sim.Service{Servers: 5, Time: sim.Exponential(10 * time.Millisecond), Queue: 10},
		Clients: []sim.Client{{Rate: 100, Timeout: time.Second}},
		For:     time.Minute,
	}
	good := make(chan int)
	for range 2 {
		go func() { good <- sim.Run(world, sim.None(), 1).Good }()
	}
	if a, b := <-good, <-good; a != b || a < 5000 {
		panic(fmt.Sprintf("%d and %d good calls", a, b))
	}
}
