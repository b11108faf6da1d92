package dashboard_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

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
