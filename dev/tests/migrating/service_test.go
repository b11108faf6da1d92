package migrating

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/tests/migrating/after"
	"github.com/weir-go/weir/dev/tests/migrating/before"
)

// world is a service with its carrier and its pager. The zero world is healthy.
type world struct {
	http.Handler
	down  bool   // the carrier fails
	asked int    // calls that reached the carrier
	leave func() // the client leaves during the call

	mu        sync.Mutex // guards what the pager uses, which other goroutines call
	pagerDown bool
	states    []string
}

// pages returns the states that the pager received.
func (w *world) pages() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.states)
}

func (w *world) setPagerDown(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pagerDown = down
}

func (w *world) price(ctx context.Context) ([]byte, error) {
	w.asked++
	if w.leave != nil {
		w.leave()
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case w.down:
		return nil, errDown
	}
	return []byte("12.30"), nil
}

// RoundTrip answers as the pager.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pagerDown {
		return nil, errors.New("no route to host")
	}
	var page struct{ Alert, State string }
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, err
	}
	if page.Alert != "carrier fails" || r.Header.Get("Content-Type") != "application/json" {
		return nil, errors.New("not a page")
	}
	w.states = append(w.states, page.State)
	return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Body: http.NoBody, Request: r}, nil
}

// ask sends a request and returns the status of the answer.
func (w *world) ask(ctx context.Context) int {
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, http.MethodGet, "/price", http.NoBody))
	return rec.Code
}

// askFor sends five requests per second and returns the number of answers per status.
func (w *world) askFor(ctx context.Context, d time.Duration) map[int]int {
	statuses := map[int]int{}
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		statuses[w.ask(ctx)]++
	}
	return statuses
}

// inBothServices runs a test with the service before and with the service after the migration.
func inBothServices(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	for name, start := range map[string]func(context.Context, *world) http.Handler{
		"before": func(ctx context.Context, w *world) http.Handler {
			s := &before.Service{Price: w.price, Pager: "http://pager.example", Client: &http.Client{Transport: w}}
			s.Start(ctx)
			return s
		},
		"after": func(ctx context.Context, w *world) http.Handler {
			s := &after.Service{Price: w.price, Pager: "http://pager.example", Client: &http.Client{Transport: w}}
			s.Start(ctx)
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				w := &world{}
				w.Handler = start(ctx, w)
				test(t, w)
			})
		})
	}
}

func TestBothServicesAnswer(t *testing.T) {
	inBothServices(t, func(t *testing.T, w *world) {
		require.Equal(t, map[int]int{200: 1500}, w.askFor(t.Context(), 5*time.Minute))
		require.Equal(t, 1500, w.asked)
		require.Empty(t, w.pages())
	})
}

func TestBothServicesLimit(t *testing.T) {
	inBothServices(t, func(t *testing.T, w *world) {
		for range 3 {
			for n := range 30 {
				want := http.StatusOK
				if n >= 20 {
					want = http.StatusTooManyRequests
				}
				require.Equal(t, want, w.ask(t.Context()), n)
			}
			time.Sleep(time.Second)
		}
		require.Equal(t, 60, w.asked)
	})
}

func TestBothServicesStopCallingAndPage(t *testing.T) {
	inBothServices(t, func(t *testing.T, w *world) {
		w.askFor(t.Context(), time.Minute)
		w.down, w.asked = true, 0
		w.askFor(t.Context(), 10*time.Second) // until the breaker opens
		statuses := w.askFor(t.Context(), 5*time.Minute)
		require.Greater(t, statuses[503], 1400, statuses)
		require.Equal(t, 1500, statuses[503]+statuses[502])
		require.Less(t, w.asked, 120)
		require.Equal(t, []string{"firing"}, w.pages())

		w.down = false
		w.askFor(t.Context(), time.Minute)
		require.Equal(t, map[int]int{200: 300}, w.askFor(t.Context(), time.Minute))
		require.Equal(t, []string{"firing", "resolved"}, w.pages())
	})
}

func TestBothServicesPageAgainIfThePagerIsDown(t *testing.T) {
	inBothServices(t, func(t *testing.T, w *world) {
		w.down = true
		w.setPagerDown(true)
		w.askFor(t.Context(), 2*time.Minute)
		require.Empty(t, w.pages())
		w.setPagerDown(false)
		w.askFor(t.Context(), 2*time.Minute)
		require.Equal(t, []string{"firing"}, w.pages())
	})
}

func TestBothServicesIgnoreClientsThatLeave(t *testing.T) {
	inBothServices(t, func(t *testing.T, w *world) {
		for range 300 {
			ctx, cancel := context.WithCancel(t.Context())
			w.leave = cancel
			w.ask(ctx)
			time.Sleep(200 * time.Millisecond)
		}
		require.Equal(t, 300, w.asked)
		w.leave = nil
		require.Equal(t, map[int]int{200: 300}, w.askFor(t.Context(), time.Minute))
		require.Empty(t, w.pages())
	})
}

func TestTheServiceIsShorterAfter(t *testing.T) {
	lines := func(name string) int {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		_, region, found := bytes.Cut(text, []byte("//readme:service\n"))
		require.True(t, found)
		return len(slices.DeleteFunc(strings.Split(string(region), "\n"), func(line string) bool { return strings.TrimSpace(line) == "" }))
	}
	require.Less(t, 2*lines("after/quotes.go"), lines("before/quotes.go"))
}
