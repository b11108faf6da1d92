package conformance_test

import (
	"time"

	"github.com/weir-go/weir/window"
)

type movingWindowConfig struct {
	Name   string `json:"name"`
	Window int    `json:"window"` // cells
	Rate   int64  `json:"rate"`   // seconds per cell
	T0     int64  `json:"t0_ns"`
}

type movingWindowStep struct {
	At         int64    `json:"t_ns"`
	Op         string   `json:"op"`
	Value      int64    `json:"value"`
	Count      *int64   `json:"count"`
	Cells      *[]int64 `json:"cells"`
	LastMoving *int64   `json:"last_moving_s"`
	Ideal      *int64   `json:"ideal_count"`
}

// movingWindowReplayer replays the MovingWindow of document 004. Weir is compared with the count
// that the MovingWindow should have had. The count that the MovingWindow did have is compared with
// the code of the document, including the faults of that code.
var movingWindowReplayer = replaying("t_ns op value", func(r *run, c movingWindowConfig) func(movingWindowStep) {
	shape := window.Config{Span: time.Duration(c.Rate) * time.Second * time.Duration(c.Window), Buckets: c.Window}
	if shape.Validate() != nil {
		r.skipRest(refusedWindow)
		return nil
	}
	// cells begin at whole seconds
	weir := window.NewCounterAt(shape, nanoTime(c.T0).Truncate(time.Second))
	reference := printedWindow{window: c.Window, rate: c.Rate, cells: make([]int64, c.Window), lastMoving: c.T0 / 1e9}
	latest := c.T0
	return func(s movingWindowStep) {
		reference.shift(s.At / 1e9)
		switch s.Op {
		case "incr":
			weir.AddAt(nanoTime(s.At), s.Value)
			reference.cells[len(reference.cells)-1] += s.Value
			checkAbsent(r, "count", s.Count)
		case "count":
			checkSame(r, "count", s.Count, reference.count())
		default:
			r.mismatch("op is %q", s.Op)
		}
		checkSame(r, "cells", s.Cells, reference.cells)
		checkSame(r, "last_moving_s", s.LastMoving, reference.lastMoving)
		if latest = max(latest, s.At); s.At < latest || r.left != "" {
			r.skipStep(clockBack)
			return
		}
		checkSame(r, "ideal_count", s.Ideal, weir.SumAt(nanoTime(s.At)))
	}
})

// printedWindow is the code in the document.
type printedWindow struct {
	window     int
	rate       int64
	cells      []int64
	lastMoving int64
}

func (w *printedWindow) shift(now int64) {
	step := int((now - w.lastMoving) / w.rate)
	if step <= 0 {
		return
	}
	if step > w.window {
		w.cells = nil
	}
	w.cells = append(w.cells[min(step, len(w.cells)):], make([]int64, step)...)
	w.lastMoving = now
}

func (w *printedWindow) count() (sum int64) {
	for _, n := range w.cells {
		sum += n
	}
	return sum
}
