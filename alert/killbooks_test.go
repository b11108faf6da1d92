package alert_test

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// notificationBooks hold the notifications that the receivers got, by the notifier.
type notificationBooks struct {
	mu       sync.Mutex
	requests map[string][]request
	got      chan struct{}
	failing  atomic.Bool // the receiver of failingBook refuses half of the requests
}

// The notifiers of the killed process: one sends alerts alone, one in batches, and one fails often.
const (
	singleBook  = "single"
	batchBook   = "batch"
	failingBook = "failing"
)

// request is one request that a receiver got. process says which process sent it, and number in
// which order. Each line is "rule state start".
type request struct {
	process, number int
	lines           []string
}

func newNotificationBooks() *notificationBooks {
	b := &notificationBooks{requests: map[string][]request{}, got: make(chan struct{}, 1)}
	b.failing.Store(true)
	return b
}

func (b *notificationBooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	body, err := io.ReadAll(r.Body)
	var got request
	if _, scanned := fmt.Sscan(r.Header.Get("X-Number"), &got.process, &got.number); err != nil || scanned != nil {
		return // the process was killed while it sent this
	}
	if name == failingBook && b.failing.Load() && rand.IntN(2) == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	got.lines = strings.Split(string(body), "\n")
	b.mu.Lock()
	b.requests[name] = append(b.requests[name], got)
	b.mu.Unlock()
	select {
	case b.got <- struct{}{}:
	default:
	}
}

// sorted returns the requests in the order in which they were sent.
func (b *notificationBooks) sorted(name string) []request {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := slices.Clone(b.requests[name])
	slices.SortFunc(all, func(x, y request) int {
		return cmp.Or(cmp.Compare(x.process, y.process), cmp.Compare(x.number, y.number))
	})
	return all
}

// repeated returns how many notifications a receiver got twice. The last request before a kill may
// have been in flight, so its notifications may come once more. All other repeats are wrong.
func (b *notificationBooks) repeated(name string) (n int, wrong []string) {
	seen, owed := map[string]bool{}, map[string]bool{}
	var last request
	for _, r := range b.sorted(name) {
		if r.process != last.process {
			for _, line := range last.lines {
				owed[line] = true
			}
		}
		for _, line := range r.lines {
			if seen[line] {
				n++
				if !owed[line] {
					wrong = append(wrong, fmt.Sprintf("process %d, request %d: %s", r.process, r.number, line))
				}
				delete(owed, line)
			}
			seen[line] = true
		}
		last = r
	}
	return n, wrong
}

// firing returns whether a receiver was last told that a rule fires, for each rule.
func (b *notificationBooks) firing(name string) map[string]bool {
	firing := map[string]bool{}
	for _, r := range b.sorted(name) {
		for _, line := range r.lines {
			rule, rest, _ := strings.Cut(line, " ")
			firing[rule] = strings.HasPrefix(rest, "firing")
		}
	}
	return firing
}

// incident says which notifications of one incident a receiver got.
type incident struct{ announced, resolved bool }

// incidents returns the incidents of each rule by their start.
func (b *notificationBooks) incidents(name string) map[string]map[string]incident {
	all := map[string]map[string]incident{}
	for _, r := range b.sorted(name) {
		for _, line := range r.lines {
			part := strings.Fields(line)
			if all[part[0]] == nil {
				all[part[0]] = map[string]incident{}
			}
			i := all[part[0]][part[2]]
			i.announced = i.announced || part[1] == "firing"
			i.resolved = i.resolved || part[1] == "resolved"
			all[part[0]][part[2]] = i
		}
	}
	return all
}

// notifications returns how many notifications a receiver got, and how many requests had several of
// them.
func (b *notificationBooks) notifications(name string) (n, batches int) {
	for _, r := range b.sorted(name) {
		n += len(r.lines)
		if len(r.lines) > 1 {
			batches++
		}
	}
	return n, batches
}
