package linear_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/weir-go/weir/breaker"
)

// hold is having a key's breaker, or letting it go.
type hold struct {
	key   int
	letGo bool
}

// holders is how many have a key's breaker, and which it is.
type holders struct {
	n       int
	breaker *breaker.Breaker
}

// holdModel explains that nobody ever has another breaker of a key than those who have it
// still. The one that lets all pass, of keys for which there is no room, is not theirs.
func holdModel() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
			parts = make([][]porcupine.Operation, keys)
			for _, op := range history {
				key := op.Input.(hold).key
				parts[key] = append(parts[key], op)
			}
			return parts
		},
		Init: func() any { return holders{} },
		Step: func(state, input, output any) (bool, any) {
			s, got := state.(holders), output.(*breaker.Breaker)
			switch {
			case got == nil:
				return true, s
			case input.(hold).letGo:
				s.n--
				return s.breaker == got && s.n >= 0, s
			case s.n > 0 && s.breaker != got:
				return false, s
			}
			return true, holders{s.n + 1, got}
		},
	}
}

const keys = 3

func TestBreakerGroup(t *testing.T) {
	evictions := int64(0)
	check(t, holdModel(), func() func(*client) {
		g := breaker.NewGroup[int]("g", breaker.GroupConfig{
			MaxKeys: 1, MaxSeries: breaker.Off, Breaker: breaker.Config{Window: time.Millisecond, Buckets: 1},
		})
		held := make([]map[int]*breaker.Breaker, workers)
		var mu sync.Mutex
		return func(c *client) {
			if held[c.id] == nil {
				held[c.id] = map[int]*breaker.Breaker{}
			}
			mine, key := held[c.id], c.IntN(keys)
			if b := mine[key]; b != nil {
				c.do(hold{key, true}, func() any {
					delete(mine, key)
					return b
				})
				runtime.KeepAlive(b)
				return
			}
			if c.IntN(300) == 0 {
				runtime.GC()
			}
			for began := time.Now(); c.IntN(2) == 0 && time.Since(began) < time.Millisecond; {
				runtime.Gosched() // until the window of the others is over
			}
			c.do(hold{key, false}, func() any {
				b := g.Get(key)
				if b.State() == breaker.ForcedClosed {
					return (*breaker.Breaker)(nil)
				}
				mine[key] = b
				return b
			})
			mu.Lock()
			defer mu.Unlock()
			evictions += g.Stats().Evictions
		}
	})
	if evictions == 0 {
		t.Fatal("nothing was ever let go")
	}
}
