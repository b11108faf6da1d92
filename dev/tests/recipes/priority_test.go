package recipes_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/dev/tests/recipes"
)

// A server takes one request at once, which lasts 8 ms. Every 20 ms it gets four.
func TestTheLeastImportantRequestsAreShedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := recipes.ShedByPriority(1)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(8 * time.Millisecond) }))
		var mu sync.Mutex
		served := map[string]int{}
		var requests sync.WaitGroup
		send := func(kind, path, agent string) {
			requests.Go(func() {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
				r.Header.Set("User-Agent", agent)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code == http.StatusOK {
					mu.Lock()
					served[kind]++
					mu.Unlock()
				}
			})
		}
		const rounds = 1000
		for range rounds {
			send("crawler", "/items", "bot")
			send("crawler", "/items", "bot")
			send("checkout", "/checkout", "browser")
			send("items", "/items", "browser")
			time.Sleep(20 * time.Millisecond)
		}
		requests.Wait()
		require.Greater(t, served["checkout"], rounds*95/100)
		require.Greater(t, served["items"], rounds*90/100)
		require.Less(t, served["crawler"], rounds)
		require.Positive(t, served["crawler"])
	})
}
