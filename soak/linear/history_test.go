package linear_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

const (
	histories = 600
	steps     = 12 // of each worker
)

// workers are as many as can be at it at the same moment, but for the checker's patience.
var workers = max(2, min(4, runtime.GOMAXPROCS(0)))

// client is one of the goroutines of a history.
type client struct {
	*rand.Rand
	id    int
	began time.Time
	ops   []porcupine.Operation
}

// do does something and writes down what and when.
func (c *client) do(input any, fn func() any) {
	call := time.Since(c.began)
	output := fn()
	c.ops = append(c.ops, porcupine.Operation{
		ClientId: c.id, Input: input, Output: output, Call: int64(call), Return: int64(time.Since(c.began)),
	})
}

// check makes many short histories, each of something new, and fails the test unless the
// model explains them all. It fails too if nothing was ever done at the same time.
func check(t *testing.T, model porcupine.Model, begin func() func(*client)) {
	t.Helper()
	overlaps := 0
	for i := range histories {
		ops := history(uint64(i), begin())
		overlaps += overlapping(ops)
		if porcupine.CheckOperations(model, ops) {
			continue
		}
		for _, op := range ops {
			t.Logf("worker %d, %6d to %6d ns: %+v gave %+v", op.ClientId, op.Call, op.Return, op.Input, op.Output)
		}
		t.Fatalf("history %d: no order explains it", i)
	}
	require.Positive(t, overlaps, "nothing ever began while another went on")
}

func history(seed uint64, step func(*client)) (all []porcupine.Operation) {
	clients := make([]client, workers)
	began := time.Now()
	var arrived atomic.Int64
	var wg sync.WaitGroup
	for i := range clients {
		clients[i] = client{Rand: rand.New(rand.NewPCG(seed, uint64(i))), id: i, began: began}
		wg.Go(func() {
			for n := range int64(steps) {
				// Each step begins when all are there, or the first would be done before the last began.
				arrived.Add(1)
				for spins := 1; arrived.Load() < (n+1)*int64(workers); spins++ {
					if spins%1000 == 0 {
						runtime.Gosched()
					}
				}
				step(&clients[i])
			}
		})
	}
	wg.Wait()
	for i := range clients {
		all = append(all, clients[i].ops...)
	}
	return all
}

func overlapping(ops []porcupine.Operation) (n int) {
	for _, a := range ops {
		for _, b := range ops {
			if a.ClientId != b.ClientId && b.Call < a.Call && a.Call < b.Return {
				n++
				break
			}
		}
	}
	return n
}
