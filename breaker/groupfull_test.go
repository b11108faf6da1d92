package breaker_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// No breaker guards keys without room, so the log says it once per minute.
func TestAFullGroupSaysSo(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	g := breaker.NewGroup[string]("hosts", breaker.GroupConfig{MaxKeys: 2})
	for _, key := range []string{"a", "b"} {
		g.Get(key).Force(breaker.ForcedOpen, "")
	}
	require.Empty(t, log.String())
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			for minute := range 3 {
				for i := range 100 {
					g.Get(fmt.Sprint(i))
				}
				require.Equal(t, minute+1, strings.Count(log.String(), "MaxKeys, which is 2"), log.String())
				time.Sleep(time.Minute)
			}
		})
		log.Reset()
	}
}
