package dashboard_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/instrument"
	"github.com/weir-go/weir/stat"
)

// discardLog discards the log.
func discardLog(t *testing.T) {
	t.Helper()
	old := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { slog.SetDefault(old) })
}

func TestPanickingSourceDoesNotAffectOthers(t *testing.T) {
	discardLog(t)
	synctest.Test(t, func(t *testing.T) {
		broken := newFakeSource("mail")
		page := newDefaultPage(broken, breaker.New("bank", breaker.Config{}))
		require.Zero(t, getSnapshot(t, page).Faults.Panics)

		broken.broken.Store(true)
		broken.gone.Store(true)
		time.Sleep(time.Second)
		s := getSnapshot(t, page)
		require.Equal(t, 1.0, s.Faults.Panics)
		require.Len(t, s.Rows, 1)
		require.Equal(t, "bank", s.Rows[0].Name)

		broken.broken.Store(false)
		broken.gone.Store(false)
		time.Sleep(time.Second)
		require.Len(t, getSnapshot(t, page).Rows, 2, "it is back")
	})
}

// panickingExplain is a breaker whose Explain panics.
type panickingExplain struct{ *breaker.Breaker }

func (panickingExplain) Explain() string { panic("broken") }

func TestPanickingExplainDoesNotAffectOthers(t *testing.T) {
	discardLog(t)
	page := newDefaultPage(panickingExplain{breaker.New("bank", breaker.Config{})}, breaker.New("post", breaker.Config{}))
	s := getSnapshot(t, page)
	require.Len(t, s.Rows, 2)
	require.Equal(t, 2.0, s.Faults.Panics, "one panic in New")
}

func TestBlockingSourceDelaysOnlyNewSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := newFakeSource("mail")
		stuck.hold = make(chan struct{})
		page := newDefaultPage(breaker.New("bank", breaker.Config{}), stuck)

		done := make(chan int)
		go func() { done <- get(page, "/snapshot.json").Code }() // reads the sources and blocks
		synctest.Wait()

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		w := httptest.NewRecorder()
		begin := time.Now()
		page.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/snapshot.json", http.NoBody))
		require.Equal(t, time.Second, time.Since(begin), "waiting ends with the request's context")
		require.Equal(t, http.StatusOK, get(page, "/").Code)

		close(stuck.hold)
		require.Equal(t, http.StatusOK, <-done)
		require.Len(t, getSnapshot(t, page).Rows, 2)
	})
}

// duplicateSource is a source that yields a series of another source from its second reading on.
type duplicateSource struct{ reads int }

func (s *duplicateSource) Observe(yield func(*stat.Series, float64) bool) {
	if s.reads++; s.reads > 1 {
		if !yield(instrument.BreakerSlowCalls.Series("bank", ""), 1) {
			return
		}
	}
}

func TestDuplicateSeriesIsCounted(t *testing.T) {
	page := newDefaultPage(breaker.New("bank", breaker.Config{}), &duplicateSource{})
	require.Equal(t, 1.0, getSnapshot(t, page).Faults.Skipped)
}

func TestGroupMembersHaveRows(t *testing.T) {
	users := breaker.NewGroup[string]("users", breaker.GroupConfig{})
	users.Get("ada").Force(breaker.ForcedOpen, "")
	users.Get("bob")
	page := newDefaultPage(users)
	states := map[string]string{}
	for _, row := range getSnapshot(t, page).Rows {
		states[row.Name] = row.State
	}
	require.Equal(t, "forced_open", states["users / ada"])
	require.Equal(t, "closed", states["users / bob"])
}
