package dashboard_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/exporters/dashboard"
	"github.com/weir-go/weir/stat"
)

// callingSource calls a function in each of its methods that the page calls.
type callingSource struct {
	*breaker.Breaker
	in func(method string)
}

func (s *callingSource) Observe(yield func(*stat.Series, float64) bool) {
	s.in("Observe")
	s.Breaker.Observe(yield)
}

func (s *callingSource) Explain() string {
	s.in("Explain")
	return "calling"
}

// A sample waits for the sources. So a source that requests one while it is read waits until its
// context is done.
func TestSourcesMayCallThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, err := dashboard.New(dashboard.Config{})
		require.NoError(t, err)
		active, nested, seen := "", false, map[string]int{}
		in := func(method string) {
			if method != active || nested {
				return
			}
			nested = true
			defer func() { nested = false }()
			seen[method]++
			more := breaker.New("more", breaker.Config{})
			require.NoError(t, page.Add(more), method)
			require.Equal(t, 200, get(page, "/").Code)
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			for _, path := range []string{"/snapshot.json", "/source.json?id=x"} {
				r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody)
				page.ServeHTTP(httptest.NewRecorder(), r)
			}
			page.Remove(more)
		}
		for _, active = range []string{"Observe", "Explain"} {
			source := &callingSource{breaker.New("a", breaker.Config{}), in}
			require.NoError(t, page.Add(source), active)
			time.Sleep(time.Second)
			require.Equal(t, 200, get(page, "/snapshot.json").Code)
			require.Equal(t, 2, seen[active], "%s: by Add and by a sample", active)
			page.Remove(source)
		}
		page.Close()
	})
}

// A source blocks in Add and in a sample. Calls of Add, and requests that need no new sample, go
// on.
func TestASlowSourceDelaysNoOtherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, err := dashboard.New(dashboard.Config{})
		require.NoError(t, err)
		wait, done := make(chan struct{}), make(chan error, 1)
		slow := &callingSource{breaker.New("slow", breaker.Config{}), func(string) { <-wait }}
		go func() { done <- page.Add(slow) }()
		synctest.Wait()
		require.NoError(t, page.Add(breaker.New("a", breaker.Config{})))
		require.Contains(t, get(page, "/snapshot.json").Body.String(), `"name":"a"`)
		close(wait)
		require.NoError(t, <-done)

		wait = make(chan struct{})
		time.Sleep(time.Second)
		go func() {
			get(page, "/snapshot.json")
			done <- nil
		}()
		synctest.Wait()
		require.NoError(t, page.Add(breaker.New("b", breaker.Config{})))
		require.Equal(t, 200, get(page, "/").Code)
		page.Remove(slow)
		close(wait)
		require.NoError(t, <-done)
		page.Close()
	})
}
