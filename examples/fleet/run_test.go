package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testenv"
)

// TestMain lets the test binary run as a process of the fleet, because the program starts itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == nodeWord {
		os.Exit(command(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// needRedis skips the test if it cannot have a Redis. In CI the test fails instead.
func needRedis(t *testing.T) {
	t.Helper()
	_, err := redisProgram()
	if testing.Short() || err != nil && os.Getenv("CI") != "true" {
		t.Skip("redis-server is needed: make deps installs it, and -short leaves this test out")
	}
}

func TestThreeProcessesShareALimitABreakerAndAnAlert(t *testing.T) {
	needRedis(t)
	const length = 8 * time.Second
	var out bytes.Buffer
	testenv.Undisturbed(200*time.Millisecond, func() {
		out.Reset()
		require.NoError(t, run(t.Context(), options{run: length}, &out))
	})
	t.Log(out.String())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var sum summary
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &sum))

	require.Equal(t, int64(processes), sum.Processes)
	require.Equal(t, sum.Calls, sum.Succeeded+sum.Failed+sum.RefusedOpen+sum.RefusedLimited, "each call has one outcome")
	require.LessOrEqual(t, sum.Succeeded+sum.Failed, int64(totalRate*length.Seconds()*1.1), "one limit")
	require.Positive(t, sum.RefusedLimited)
	require.Equal(t, int64(processes), sum.BreakersOpened, "each breaker opens once, by the shared counts")
	require.Equal(t, int64(processes), sum.BreakersClosed, "each breaker closes once")
	require.Positive(t, sum.RefusedOpen)
	require.Equal(t, int64(1), sum.AlertsFired, "one alert")
	require.Equal(t, int64(1), sum.AlertsResolved)
}

func TestAPaymentHasADeadline(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	n := &node{url: silent.URL}
	require.ErrorIs(t, n.charge(t.Context()), context.DeadlineExceeded)
}

func TestRunEndsEarly(t *testing.T) {
	needRedis(t)
	// Long enough for three processes to connect on a busy machine.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var out bytes.Buffer
	began := testenv.Running()
	require.NoError(t, run(ctx, options{run: time.Hour}, &out))
	// Far less than the hour that the run was given.
	require.Less(t, testenv.Running()-began, 20*5*time.Second)
	require.Contains(t, out.String(), `{"processes":3,`)
}

func TestAnAlertOfSeveralProcessesCountsOnce(t *testing.T) {
	d := newCollector()
	for _, m := range []message{{Alert: "a"}, {Alert: "b"}, {Alert: "a", Resolved: true}} {
		for process := range processes {
			d.add(process, m)
		}
	}
	require.Equal(t, summary{AlertsFired: 2, AlertsResolved: 1}, d.sum)
	d.add(0, message{Alert: "a"})
	d.add(0, message{Alert: "a"})
	d.add(1, message{Alert: "a", Resolved: true})
	require.Equal(t, summary{AlertsFired: 3, AlertsResolved: 1}, d.sum)
}

func TestFlags(t *testing.T) {
	o, err := parse([]string{"-for", "1m", "-redis", "host:1"}, &bytes.Buffer{})
	require.NoError(t, err)
	require.Equal(t, options{time.Minute, "host:1"}, o)
	for want, args := range map[string][]string{
		"-for is -1s, must be above 0": {"-for", "-1s"},
		`unexpected argument "x"`:      {"x"},
	} {
		var stderr bytes.Buffer
		_, err := parse(args, &stderr)
		require.EqualError(t, err, want)
		require.Equal(t, "fleet: "+want+"\n", stderr.String())
	}
}

func TestRunWithoutRedisSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	require.ErrorContains(t, run(t.Context(), options{run: time.Second}, &bytes.Buffer{}), "install Debian's package redis-server")
}
