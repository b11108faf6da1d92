package window_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/window"
)

func TestOverloadedCountsAsAFailure(t *testing.T) {
	for _, config := range []window.CallsConfig{{Span: time.Minute}, {Last: 10}} {
		c := window.NewCalls(config)
		c.Record(window.Overloaded, time.Millisecond)
		c.RecordAt(time.Now(), window.Overloaded, time.Millisecond)
		c.Record(window.Outcome(9), time.Millisecond)
		require.Equal(t, int64(2), c.Totals().Failures)
		require.Equal(t, int64(1), c.Totals().Ignored)
	}
	for o, failed := range map[window.Outcome]bool{window.Success: false, window.Failure: true, window.Ignored: false, window.Overloaded: true, 9: false} {
		require.Equal(t, failed, o.Failed(), o)
	}
}
