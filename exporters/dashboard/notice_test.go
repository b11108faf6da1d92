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

// noticed is a source with a notice and no metrics.
type noticed struct{ text string }

func (*noticed) Observe(func(*stat.Series, float64) bool) {}
func (n *noticed) Notice() string                         { return n.text }

func TestANoticeIsShownWhileItsSourceHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := &noticed{}
		page := handler(file, &noticed{text: "other"})
		require.Equal(t, []string{"other"}, snap(t, page).Faults.Notices)
		file.text = "weir.yaml:7: burst is -2"
		require.Equal(t, []string{"other"}, snap(t, page).Faults.Notices, "no sample is due")
		time.Sleep(time.Second)
		require.ElementsMatch(t, []string{file.text, "other"}, snap(t, page).Faults.Notices)
		file.text = ""
		time.Sleep(time.Second)
		require.Equal(t, []string{"other"}, snap(t, page).Faults.Notices)
	})
}

func TestNoticesAreBounded(t *testing.T) {
	sources := make([]stat.Source, 50)
	for i := range sources {
		sources[i] = &noticed{text: "x" + strings.Repeat("ü", 5000)}
	}
	notices := snap(t, handler(sources...)).Faults.Notices
	require.Len(t, notices, 8)
	require.Equal(t, "x"+strings.Repeat("ü", 999)+"…", notices[0])
}
