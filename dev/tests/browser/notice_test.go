package browser_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/stat"
)

// noticeSource is a source with a notice.
type noticeSource struct{ text atomic.Pointer[string] }

func (*noticeSource) Observe(func(*stat.Series, float64) bool) {}
func (n *noticeSource) Notice() string                         { return *n.text.Load() }

func TestANoticeOfASourceIsShown(t *testing.T) {
	file, none, fault := &noticeSource{}, "", "The configuration was refused.\nweir.yaml:7: gates.a: <b>burst</b> is -2"
	file.text.Store(&none)
	b, s := newTab(t), serve(t, quickConfig, file, breaker.New("bank", breaker.Config{}))
	b.visit(s)
	b.requireText("#status", "Live")
	require.True(t, eval[bool](b, `document.getElementById("notices").hidden`))
	file.text.Store(&fault)
	b.waitUntil(`!document.getElementById("notices").hidden`)
	require.Equal(t, fault, b.text("#notices"), "on two lines, and as text")
	file.text.Store(&none)
	b.waitUntil(`document.getElementById("notices").hidden`)
}

// hangingSource is a source that blocks until a channel is closed, if it has one.
type hangingSource struct{ until atomic.Pointer[chan struct{}] }

func (h *hangingSource) Observe(func(*stat.Series, float64) bool) {
	if until := h.until.Load(); until != nil {
		<-*until
	}
}
