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

	"github.com/weir-go/weir/internal/testenv"
)

const stepsPerWorker = 12

var historyCount = testenv.Repeat(600, 250)

// workers is the number of goroutines: one per processor, up to what the checker can handle.
var workers = max(2, min(4, runtime.GOMAXPROCS(0)))

// client is a goroutine of a history.
type client struct {
	*rand.Rand
	id    int
	began time.Time
	ops   []porcupine.Operation
}

// do performs an operation and records it with its times.
func (c *client) do(input any, fn func() any) {
	call := time.Since(c.began)
	output := fn()
	c.ops = append(c.ops, porcupine.Operation{
		ClientId: c.id, Input: input, Output: output, Call: int64(call), Return: int64(time.Since(c.began)),
	})
}

// checkModel makes many short histories, each of a new object, and fails the test unless the model
// explains all of them. It also fails if no two operations ever overlapped. On a machine that is
// too busy to run two workers at once it makes more histories until two operations do.
func checkModel(t *testing.T, model porcupine.Model, begin func() func(*client)) {
	t.Helper()
	overlaps := 0
	for i := 0; i < historyCount || overlaps == 0 && i < 50*historyCount; i++ {
		ops := recordHistory(uint64(i), begin())
		if ops[len(ops)-1].Return > int64(time.Second/2) {
			continue // the machine stood still, and some models know no time
		}
		overlaps += countOverlapping(ops)
		if porcupine.CheckOperations(model, ops) {
			continue
		}
		for _, op := range ops {
			t.Logf("worker %d, %6d to %6d ns: %+v gave %+v", op.ClientId, op.Call, op.Return, op.Input, op.Output)
		}
		t.Fatalf("history %d: no order of the operations explains it", i)
	}
	require.Positive(t, overlaps, "no two operations overlapped")
}

func recordHistory(seed uint64, step func(*client)) (all []porcupine.Operation) {
	clients := make([]client, workers)
	began := time.Now()
	var arrived atomic.Int64
	var wg sync.WaitGroup
	for i := range clients {
		clients[i] = client{Rand: rand.New(rand.NewPCG(seed, uint64(i))), id: i, began: began}
		wg.Go(func() {
			for n := range int64(stepsPerWorker) {
				// Each step begins when all workers are ready. Otherwise the first would end before
				// the last begins.
				arrived.Add(1)
				for spins := 1; arrived.Load() < (n+1)*int64(workers); spins++ {
					if spins > 20_000 {
						<-time.After(50 * time.Microsecond) // the others have no processor
					} else if spins%1000 == 0 {
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

func countOverlapping(ops []porcupine.Operation) (n int) {
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
