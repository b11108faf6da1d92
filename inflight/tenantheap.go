package inflight

// tenantHeap is a heap of tenants by pass, for container/heap.
type tenantHeap []*tenant

func (h tenantHeap) Len() int           { return len(h) }
func (h tenantHeap) Less(i, j int) bool { return h[i].pass < h[j].pass }

func (h tenantHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].turn, h[j].turn = i, j
}

func (h *tenantHeap) Push(x any) {
	t := x.(*tenant)
	t.turn = len(*h)
	*h = append(*h, t)
}

func (h *tenantHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return t
}
