package inflight

// tenantHeap is a heap of tenants for container/heap, by pass or by load.
type tenantHeap struct {
	list   []*tenant
	byLoad bool
}

// index returns the field of a tenant that has its index in the list.
func (h *tenantHeap) index(t *tenant) *int {
	if h.byLoad {
		return &t.loaded
	}
	return &t.turn
}

func (h *tenantHeap) Len() int { return len(h.list) }

func (h *tenantHeap) Less(i, j int) bool {
	if h.byLoad {
		return h.list[i].load() > h.list[j].load()
	}
	return h.list[i].pass < h.list[j].pass
}

func (h *tenantHeap) Swap(i, j int) {
	l := h.list
	l[i], l[j] = l[j], l[i]
	*h.index(l[i]), *h.index(l[j]) = i, j
}

func (h *tenantHeap) Push(x any) {
	t := x.(*tenant)
	*h.index(t) = len(h.list)
	h.list = append(h.list, t)
}

func (h *tenantHeap) Pop() any {
	last := len(h.list) - 1
	t := h.list[last]
	h.list[last] = nil
	h.list = h.list[:last]
	return t
}
