package sim

import (
	"container/heap"
	"time"
)

// startOf returns when a server would begin an attempt that came now.
func (s *service) startOf(h *host) time.Duration {
	now := s.run.now()
	if h.mayStart() {
		return now
	}
	ends := make(timeHeap, 0, len(h.working)+1)
	for _, a := range h.working {
		ends = append(ends, a.ends)
	}
	heap.Init(&ends)
	start := now
	free := func() {
		for len(ends) >= h.servers {
			start = heap.Pop(&ends).(time.Duration)
		}
	}
	for _, a := range h.queue {
		if a.over && s.DropsAbandoned {
			continue
		}
		free()
		works, _ := s.timeOf(h, a)
		heap.Push(&ends, start+works)
	}
	free()
	return start
}

// timeHeap is a heap of times with the first one on top.
type timeHeap []time.Duration

func (t timeHeap) Len() int           { return len(t) }
func (t timeHeap) Less(i, j int) bool { return t[i] < t[j] }
func (t timeHeap) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timeHeap) Push(x any)        { *t = append(*t, x.(time.Duration)) }
func (t *timeHeap) Pop() any {
	h := *t
	last := h[len(h)-1]
	*t = h[:len(h)-1]
	return last
}
