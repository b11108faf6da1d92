//go:build unix

package weirconfig_test

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestASignalAppliesTheFileAtOnce(t *testing.T) {
	w := watchFile(t, `gates: {a: {}}`)
	received := make(chan os.Signal, 1)
	// without this, the signal would end the test if Watch has not begun
	signal.Notify(received, syscall.SIGHUP)
	defer signal.Stop(received)
	w.write(t, `gates: {a: {}, b: {}}`)
	began := time.Now()
	for w.countLogs(applied) == 0 {
		require.Less(t, time.Since(began), time.Second, "before Watch would read the file twice")
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
		<-received
		runtime.Gosched()
	}
	require.NotNil(t, w.Gate("b"))
}
