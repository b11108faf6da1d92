package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"

	"github.com/weir-go/weir/internal/testenv"
)

// silentView is a view that draws nothing.
type silentView struct{ closed bool }

func (*silentView) every() time.Duration { return 10 * time.Millisecond }
func (*silentView) draw(snapshot)        {}
func (v *silentView) close(snapshot)     { v.closed = true }

func runOf(d time.Duration) options { return options{run: d, listen: "127.0.0.1:0"} }

// lastLine returns the summary at the end of the output.
func lastLine(t *testing.T, out string) (sum summary) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &sum), out)
	return sum
}

func TestACompleteRunHasAllTotals(t *testing.T) {
	var out, complaints bytes.Buffer

	testenv.Undisturbed(100*time.Millisecond, func() {
		out.Reset()
		complaints.Reset()
		require.NoError(t, run(t.Context(), runOf(4*time.Second), newLineView(&out), &out, &complaints))
	})

	sum := lastLine(t, out.String())
	require.Empty(t, sum.missing(), out.String())
	require.Empty(t, complaints.String())
	require.True(t, sum.addsUp(), sum.String())
	require.EqualValues(t, 1, sum.AlertsFired, "the alert fires once")
	require.Equal(t, sum.AlertsFired, sum.AlertsResolved)
	require.Greater(t, sum.Succeeded, sum.Calls/3)
	require.Less(t, sum.Failed, sum.Calls/5, "the breaker prevents most failures")
}

func TestAShortRunNamesMissingTotals(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var out, complaints bytes.Buffer
	v := &silentView{}

	require.NoError(t, run(ctx, runOf(time.Hour), v, &out, &complaints))

	sum := lastLine(t, out.String())
	require.True(t, sum.addsUp(), sum.String())
	require.Positive(t, sum.Calls)
	require.True(t, v.closed)
	require.Contains(t, complaints.String(), "still zero: alerts_fired, alerts_resolved, breaker_closed")
}

func TestExportsGoToTheEndpointOfTheEnvironment(t *testing.T) {
	var posts, size atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/v1/metrics" {
			n, _ := io.Copy(io.Discard, r.Body)
			posts.Add(1)
			size.Add(n)
		}
	}))
	defer receiver.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL)
	var out, complaints bytes.Buffer

	require.NoError(t, run(t.Context(), runOf(300*time.Millisecond), &silentView{}, &out, &complaints))

	require.GreaterOrEqual(t, posts.Load(), lastLine(t, out.String()).OTelExports, "an aborted export can still arrive")
	require.Positive(t, lastLine(t, out.String()).OTelExports)
	require.Greater(t, size.Load(), int64(1000))
	require.NotContains(t, complaints.String(), "OpenTelemetry")
}

func TestFailedExportsAreReportedAndNotCounted(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "100")
	var out, complaints bytes.Buffer

	require.NoError(t, run(t.Context(), runOf(300*time.Millisecond), &silentView{}, &out, &complaints))

	require.Zero(t, lastLine(t, out.String()).OTelExports)
	require.Contains(t, complaints.String(), "storefront: errors of OpenTelemetry: ")
}

func TestErrorsOfTheSDKAreNotPrinted(t *testing.T) {
	tel, err := newTelemetry(t.Context(), time.Hour, "")
	require.NoError(t, err)
	otel.Handle(errors.New("a bad day"))
	require.ErrorContains(t, tel.close(), "errors of OpenTelemetry: 1, the latest: a bad day")
}

func TestACancelledExportIsNotAnError(t *testing.T) {
	var tel telemetry
	tel.addError(fmt.Errorf("upload: %w", context.Canceled))
	require.Zero(t, tel.faults.Load())
	tel.addError(fmt.Errorf("upload: %w", context.DeadlineExceeded))
	require.EqualValues(t, 1, tel.faults.Load())
}

func TestExportsGoToTheFile(t *testing.T) {
	o := runOf(300 * time.Millisecond)
	o.otel = t.TempDir() + "/figures.json"
	var out bytes.Buffer

	require.NoError(t, run(t.Context(), o, &silentView{}, &out, io.Discard))

	text, err := os.ReadFile(o.otel)
	require.NoError(t, err)
	require.EqualValues(t, strings.Count(string(text), "\n"), lastLine(t, out.String()).OTelExports)
	require.Contains(t, string(text), "weir.breaker.calls")
}

func TestARunThatCannotStartIsAnError(t *testing.T) {
	o := runOf(time.Second)
	o.listen = "no address"
	require.ErrorContains(t, run(t.Context(), o, &silentView{}, io.Discard, io.Discard), "no address")

	o = runOf(time.Second)
	o.otel = t.TempDir() + "/no/such/folder"
	free, err := serve(t.Context(), o.listen, nil)
	require.NoError(t, err)
	free.close()
	o.listen = free.addr
	require.ErrorIs(t, run(t.Context(), o, &silentView{}, io.Discard, io.Discard), os.ErrNotExist)
	free, err = serve(t.Context(), free.addr, nil)
	require.NoError(t, err, "the address is free again")
	free.close()
}

// panickingView is a view that panics.
type panickingView struct{ silentView }

func (*panickingView) draw(snapshot) { panic("a bug") }

func TestAPanicRestoresTheTerminal(t *testing.T) {
	s, err := build(t.Context(), runOf(time.Second))
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = s.close() })
	v := &panickingView{}

	require.PanicsWithValue(t, "a bug", func() { show(t.Context(), v, newSampler(s)) })
	require.True(t, v.closed)
}

func TestFlags(t *testing.T) {
	cases := map[string]string{
		"-for 0s":     "-for is 0s, must be above 0",
		"-for -1s":    "-for is -1s, must be above 0",
		"-for x":      `invalid value "x" for flag -for`,
		"-for 1s 2s":  `unexpected argument "2s"`,
		"-unheard of": "flag provided but not defined",
	}
	for args, want := range cases {
		var complaints bytes.Buffer
		_, err := parse(strings.Fields(args), &complaints)
		require.Error(t, err, args)
		require.Contains(t, complaints.String(), want, args)
	}

	o, err := parse(nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, options{run: 10 * time.Second, listen: "127.0.0.1:0"}, o)
}
