//go:build unix

// Package suspend stops a real process with SIGSTOP while it calls a healthy service through
// guards. It shows that the simulation of a suspended process is realistic: when the process
// continues, all its calls time out at once.
package suspend

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// timeout is the time after which callers stop waiting for the service.
	timeout = time.Second
	// rate is the calls per second through each guard.
	rate = 300
	// suspended is how long the process is stopped.
	suspended = 3 * time.Second
	// after is how long the process makes calls after it continues.
	after = 2 * time.Second
)

// callerVariable is an environment variable that makes the test binary run as the stopped process.
// Its value is the address of the service.
const callerVariable = "WEIR_PROVING_SERVICE"

func TestMain(m *testing.M) {
	if address := os.Getenv(callerVariable); address != "" {
		os.Exit(callUntilStopped(address))
	}
	os.Exit(m.Run())
}

// The test asserts that the experiment works, and logs what the guards do. The test runs in real
// time, because it stops a real process.
func TestAStoppedProcessCallsAHealthyService(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 13 s, so -short leaves it out: make test runs it")
	}
	for name, test := range map[string]struct{ serviceTime, before time.Duration }{
		"60 in flight of 600 calls":  {200 * time.Millisecond, 2 * time.Second},
		"240 in flight of 360 calls": {800 * time.Millisecond, 1200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) { stopACaller(t, test.serviceTime, test.before) })
	}
}

// stopACaller starts a process that calls a service, and stops it for a while after some time.
func stopACaller(t *testing.T, serviceTime, before time.Duration) {
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(serviceTime):
		case <-r.Context().Done():
		}
	}))
	defer service.Close()
	program, err := os.Executable()
	require.NoError(t, err)
	caller := exec.CommandContext(t.Context(), program)
	caller.Env = append(os.Environ(), callerVariable+"="+service.URL)
	caller.Stderr = os.Stderr
	out, err := caller.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, caller.Start())
	lines := bufio.NewScanner(out)

	require.True(t, lines.Scan(), "the caller says that it calls")
	<-time.After(before)
	require.NoError(t, caller.Process.Signal(syscall.SIGSTOP))
	<-time.After(suspended)
	require.NoError(t, caller.Process.Signal(syscall.SIGCONT))
	require.True(t, lines.Scan(), "the caller says what it saw")
	var seen map[string]resultCounts
	require.NoError(t, json.Unmarshal(lines.Bytes(), &seen))
	require.NoError(t, caller.Wait())

	require.Len(t, seen, len(makers()))
	for name, s := range seen {
		t.Logf("%s: %+v", name, s)
		require.Greater(t, s.Gap, suspended-time.Second/2, "the process was stopped")
		require.Greater(t, s.GoodBefore, 10, "the service is healthy, and calls reach it")
		require.Positive(t, s.InFlight, "calls were in flight when the process was stopped")
		require.Equal(t, s.Calls, s.Good+s.Failed+s.Refused)
	}
}
