package guards

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/afex/hystrix-go/hystrix"

	"github.com/weir-go/weir/dev/proving/internal/sim"
)

func hystrixRows() []sim.Maker {
	return []sim.Maker{
		hystrixCommand("hystrix-go", "the defaults: a timeout of 1 s, ten calls in flight, and half of at least 20 "+
			"calls in 10 s; open for 5 s",
			func(sim.Client) hystrix.CommandConfig { return hystrix.CommandConfig{} }),
		hystrixCommand("hystrix-go, tuned", "the values of its README: 100 calls in flight, 25 % of the calls; with "+
			"the timeout of the caller, because hystrix itself should end the calls",
			func(c sim.Client) hystrix.CommandConfig {
				return hystrix.CommandConfig{
					Timeout: int(c.Timeout / time.Millisecond), MaxConcurrentRequests: 100, ErrorPercentThreshold: 25,
				}
			}),
	}
}

func hystrixCommand(name, about string, config func(sim.Client) hystrix.CommandConfig) sim.Maker {
	return sim.Maker{
		Name: name, Config: about, Peer: true,
		New: func(s sim.Setting) sim.Guard {
			useHystrixLog()
			command := fmt.Sprintf("command %d", hystrixCommands.Add(1))
			hystrix.ConfigureCommand(command, config(clientOf(s)))
			circuit, _, err := hystrix.GetCircuit(command)
			if err != nil {
				panic(err) // GetCircuit never returns an error
			}
			g := &hystrixGuard{circuit: circuit}
			g.refusals = []error{hystrix.ErrCircuitOpen, hystrix.ErrMaxConcurrency}
			g.call = func(ctx context.Context, f func(context.Context) error) error {
				return runHystrix(command, func() error { return f(ctx) })
			}
			hystrixOpenings.Store(command, &g.openings)
			return g
		},
	}
}

// hystrixCommands makes the names of commands unique, because hystrix never removes them.
var hystrixCommands atomic.Int64

// runHystrix runs f. hystrix ignores an error that is context.DeadlineExceeded, but not one that
// wraps it, as the errors of net/http do.
func runHystrix(command string, f func() error) error {
	err := hystrix.Do(command, func() error {
		if err := f(); err != nil {
			return &wrappedError{err}
		}
		return nil
	}, nil)
	if w, ok := err.(*wrappedError); ok { //nolint:errorlint // runHystrix itself has made the outermost error
		return w.error
	}
	return err
}

type wrappedError struct{ error }

func (w *wrappedError) Unwrap() error { return w.error }

// hystrixGuard ends the goroutines of its circuit.
type hystrixGuard struct {
	guard
	circuit *hystrix.CircuitBreaker
}

// Close ends the two goroutines that hystrix starts for each circuit and never ends. They would
// keep the bubble from ending. They end when their channels are closed, and these are reached
// through unexported fields, because hystrix has no function for that.
func (g *hystrixGuard) Close() {
	synctest.Wait() // the last calls have returned, but may still report
	circuit := reflect.ValueOf(g.circuit).Elem()
	closeUpdates(circuit.FieldByName("metrics").Elem())
	closeUpdates(circuit.FieldByName("executorPool").Elem().FieldByName("Metrics").Elem())
	hystrixOpenings.Delete(g.circuit.Name)
}

func closeUpdates(metrics reflect.Value) {
	updates := metrics.FieldByName("Updates")
	reflect.NewAt(updates.Type(), unsafe.Pointer(updates.UnsafeAddr())).Elem().Close()
}

// hystrixOpenings counts openings by the name of the command. hystrix reports an opening only to
// its log.
var hystrixOpenings sync.Map

var useHystrixLog = sync.OnceFunc(func() { hystrix.SetLogger(hystrixLog{}) })

type hystrixLog struct{}

func (hystrixLog) Printf(format string, items ...any) {
	if !strings.Contains(format, "opening circuit") {
		return
	}
	if count, ok := hystrixOpenings.Load(items[0]); ok {
		count.(*atomic.Int64).Add(1)
	}
}
