package dashboard_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/stat"
)

type faults struct {
	Panics, Skipped float64
	Notices         []string
}

// noticeSource is a source with a notice and no metrics.
type noticeSource struct{ text string }

func (*noticeSource) Observe(func(*stat.Series, float64) bool) {}
func (n *noticeSource) Notice() string                         { return n.text }

func TestANoticeIsShownWhileItsSourceHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := &noticeSource{}
		page := newDefaultPage(file, &noticeSource{text: "other"})
		require.Equal(t, []string{"other"}, getSnapshot(t, page).Faults.Notices)
		file.text = "weir.yaml:7: burst is -2"
		require.Equal(t, []string{"other"}, getSnapshot(t, page).Faults.Notices, "no sample is due")
		time.Sleep(time.Second)
		require.ElementsMatch(t, []string{file.text, "other"}, getSnapshot(t, page).Faults.Notices)
		file.text = ""
		time.Sleep(time.Second)
		require.Equal(t, []string{"other"}, getSnapshot(t, page).Faults.Notices)
	})
}

func TestNoticesAreBounded(t *testing.T) {
	sources := make([]stat.Source, 50)
	for i := range sources {
		sources[i] = &noticeSource{text: "x" + strings.Repeat("ü", 5000)}
	}
	notices := getSnapshot(t, newDefaultPage(sources...)).Faults.Notices
	require.Len(t, notices, 8)
	require.Equal(t, "x"+strings.Repeat("ü", 999)+"…", notices[0])
}

// changingSource is a source that consists of others, as a weirconfig.Set does.
type changingSource struct {
	noticeSource
	sources []stat.Source
}

func (s *changingSource) Sources() []stat.Source { return append(s.sources, s) }

func TestSourcesOfASetAreShownWithTheirDetails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := &changingSource{noticeSource{"refused"}, []stat.Source{breaker.New("payments", breaker.Config{})}}
		page := newDefaultPage(set)
		got := getSnapshot(t, page)
		require.Equal(t, []string{"refused"}, got.Faults.Notices, "once, although the set is one of its sources")
		require.Len(t, got.Rows, 1)
		search := breaker.New("search", breaker.Config{})
		search.Force(breaker.ForcedOpen, "maintenance")
		set.sources = []stat.Source{search}
		time.Sleep(time.Second)
		got = getSnapshot(t, page)
		require.Len(t, got.Rows, 1)
		require.Contains(t, readDetail(t, page, got.row(t, "search").ID).Why, "maintenance")
		page.Remove(set)
		time.Sleep(time.Second)
		require.Empty(t, getSnapshot(t, page).Rows)
	})
}
