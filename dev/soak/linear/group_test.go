package linear_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/weir-go/weir/breaker"
)

// keyCall is a call through the breaker of a key.
type keyCall struct {
	key int
	do  action
}

type action uint8

const (
	failCall action = iota // a failed call; the answer is whether it counted
	askCount               // the answer is the number of failures in the window
	reset                  // forgets the failures
)

// keyModel models a key by one number: its failures are counted together, no matter how often its
// breaker was evicted without failures.
func keyModel() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
			parts = make([][]porcupine.Operation, keyCount)
			for _, op := range history {
				key := op.Input.(keyCall).key
				parts[key] = append(parts[key], op)
			}
			return parts
		},
		Init: func() any { return int64(0) },
		Step: func(state, input, output any) (bool, any) {
			failures := state.(int64)
			switch input.(keyCall).do {
			case failCall:
				if output.(bool) {
					failures++
				}
				return true, failures
			case askCount:
				return output.(int64) == failures, failures
			default:
				return true, int64(0)
			}
		},
	}
}

const keyCount = 3

func TestBreakerGroup(t *testing.T) {
	evictions, unguarded := 0.0, 0.0
	checkModel(t, keyModel(), func() func(*client) {
		g := breaker.NewGroup[string]("g", breaker.GroupConfig{
			MaxKeys: keyCount + 2, MaxSeries: breaker.Off, Breaker: breaker.Config{Window: time.Hour, MinCalls: 1 << 20},
		})
		var mu sync.Mutex
		return func(c *client) {
			in := keyCall{c.IntN(keyCount), action(c.IntN(3))}
			b, inFlight := beginCall(g, fmt.Sprint(in.key))
			defer inFlight.Record(t.Context(), nil, breaker.Ignored)
			for range c.IntN(3) {
				// may evict a breaker without failures
				g.Get(fmt.Sprint("new ", c.id, c.IntN(1000)))
			}
			c.do(in, func() any { return doAction(b, in.do) })
			mu.Lock()
			defer mu.Unlock()
			for s, v := range g.Observe {
				switch s.Instrument.Name {
				case "weir.breaker.group.evictions":
					evictions += v
				case "weir.breaker.group.unguarded":
					unguarded += v
				}
			}
		}
	})
	if evictions == 0 || unguarded > 0 {
		t.Fatalf("%v evictions, %v calls unguarded", evictions, unguarded)
	}
}

// beginCall begins a call of the key. As long as it is in flight, the key is not evicted.
func beginCall(g *breaker.Group[string], key string) (*breaker.Breaker, *breaker.Permit) {
	for {
		b := g.Get(key)
		if p, err := b.Allow(); err == nil && g.Get(key) == b { // it was not evicted before
			return b, &p
		}
	}
}

func doAction(b *breaker.Breaker, do action) any {
	switch do {
	case failCall:
		p, err := b.Allow()
		return err == nil && p.Record(context.Background(), nil, breaker.Failure)
	case askCount:
		return b.Counts().Failures
	default:
		b.Reset()
		return nil
	}
}
