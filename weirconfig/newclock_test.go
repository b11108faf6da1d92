package weirconfig_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/weirconfig"
)

// A set is a package variable that is used with the real clock, and then in one bubble after the
// other. In each clock its file changes, and all objects work: those of the first file, those that
// the update adds, and those that updates in other clocks have added.
func TestASetStartsAgainWithEachClock(t *testing.T) {
	w := &watchedSet{path: filepath.Join(t.TempDir(), "w.yaml")}
	text := "gates: {g0: {rate: 1/h, burst: 3}"
	sinks, rules := "", ""
	next := func(t *testing.T, i int) {
		text += fmt.Sprintf(", g%d: {rate: 1/h, burst: 3}", i)
		sinks += fmt.Sprintf("s%d: {kind: log}, ", i)
		rules += fmt.Sprintf("{name: r%d, of: g%d, value: tripped}, ", i, i)
		w.write(t, text+"}\nsinks: {"+sinks+"}\nrules: ["+rules+"]\n")
	}
	next(t, 1)
	file, err := weirconfig.Load(w.path)
	require.NoError(t, err)
	w.Set, err = weirconfig.New(file, weirconfig.Config{Logger: slog.New(slog.NewTextHandler(w, nil))})
	require.NoError(t, err)
	use := func(t *testing.T, n int) {
		for i := range n + 1 {
			g := w.Gate(fmt.Sprintf("g%d", i))
			require.Equal(t, 3, allowedOfTen(t, g), i)
			g.Breaker().Force(breaker.ForcedOpen, "")
		}
		w.Monitor().Evaluate(time.Now())
		require.NoError(t, w.Monitor().Flush(t.Context()))
		require.Len(t, w.Monitor().Alerts(), n)
		for i := range n + 1 {
			w.Gate(fmt.Sprintf("g%d", i)).Breaker().Release()
		}
		w.Monitor().Evaluate(time.Now())
		require.NoError(t, w.Monitor().Flush(t.Context()))
	}
	use(t, 1)
	for bubble := range 3 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer synctest.Wait()
			defer cancel()
			go func() { _ = w.Watch(ctx) }()
			use(t, bubble+1)
			next(t, bubble+2)
			time.Sleep(3 * time.Hour)
			require.Equal(t, bubble+1, w.countLogs(applied))
			use(t, bubble+2)
		})
	}
	use(t, 4)
}
