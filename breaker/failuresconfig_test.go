package breaker_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/breaker/breakerlog"
)

type traceKey struct{}

func TestDescribeFailureAddsAndRemovesTexts(t *testing.T) {
	long := strings.Repeat("n", 1000)
	describe := func(ctx context.Context, err error, f *breaker.FailedCall) {
		switch trace := ctx.Value(traceKey{}); {
		case err != nil && err.Error() == "panics":
			f.Message = "half done"
			panic("describe")
		case err == nil && f.Kind == "result":
			f.Kind, f.Note = long, long
		case trace != nil:
			f.Message, f.Note = "", "trace "+trace.(string)
		}
	}
	b := breaker.New("b", breaker.Config{ConsecutiveFailures: 5, DescribeFailure: describe})
	call := func(ctx context.Context, err error, judged breaker.Outcome) {
		_, _ = breaker.DoResult(ctx, b, func(context.Context) (int, error) { return 0, err },
			func(int, error) breaker.Outcome { return judged })
	}
	call(context.WithValue(bg(), traceKey{}, "4bf9"), errors.New("password=1"), breaker.Failure)
	call(bg(), errors.New("no trace"), breaker.Failure)
	call(bg(), errors.New("panics"), breaker.Failure)
	call(bg(), nil, breaker.Failure)
	p, _ := b.Allow()
	p.Record(context.WithValue(bg(), traceKey{}, "4bf9"), nil, breaker.Failure)
	list := refusal(t, b).LastFailures
	for i := range list {
		list[i].Time, list[i].Duration = time.Time{}, 0
	}
	require.Equal(t, []breaker.FailedCall{
		{Kind: "error", Note: "trace 4bf9"},
		{Kind: "error", Message: "no trace"},
		{Kind: "error"},
		{Kind: long[:100], Note: long[:200]},
		{Kind: "recorded", Note: "trace 4bf9"},
	}, list)
}

func TestKeepFailuresOffKeepsNone(t *testing.T) {
	c := breaker.Config{ConsecutiveFailures: 2, KeepFailures: breaker.Off, DescribeFailure: func(context.Context, error, *breaker.FailedCall) {
		t.Error("called")
	}}
	b := breaker.New("b", c)
	run(t, b, 2, fail)
	require.Empty(t, refusal(t, b).LastFailures)
	require.NotEmpty(t, refusal(t, b).Margin)

	for _, n := range []int{-2, 101} {
		c.KeepFailures = n
		require.ErrorContains(t, c.Validate(), "must lie between 1 and 100, or Off")
	}
	c.KeepFailures = 100
	require.NoError(t, c.Validate())
}

func TestReconfigureKeepsTheLatestFailuresThatFit(t *testing.T) {
	synctest.Test(t, testReconfigureKeepsTheLatestFailuresThatFit)
}

func testReconfigureKeepsTheLatestFailuresThatFit(t *testing.T) {
	c := breaker.Config{ConsecutiveFailures: 12, FailureRun: breaker.Off, KeepFailures: 4}
	b := breaker.New("b", c)
	fails := func(from, to int) {
		for n := from; n <= to; n++ {
			time.Sleep(time.Millisecond)
			run(t, b, 1, failWithNumber(n))
		}
	}
	fails(0, 5)
	c.KeepFailures = 2
	require.NoError(t, b.Reconfigure(c))
	fails(6, 6)
	c.KeepFailures = 8
	require.NoError(t, b.Reconfigure(c))
	fails(7, 11)
	require.Equal(t, []string{"failure 5", "failure 6", "failure 7", "failure 8", "failure 9", "failure 10", "failure 11"},
		messages(refusal(t, b).LastFailures))
}

// TestABurstOfFailuresIsNotDescribed makes many failures at once. The texts of most of them are not
// read.
func TestABurstOfFailuresIsNotDescribed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		described := 0
		b := breaker.New("b", breaker.Config{FailureRate: breaker.Off, FailureRun: breaker.Off, KeepFailures: 3, DescribeFailure: func(context.Context, error, *breaker.FailedCall) {
			described++
		}})
		for n := range 50 {
			run(t, b, 1, failWithNumber(n))
		}
		require.Equal(t, []string{"failure 0", "failure 1", "failure 2"}, messages(b.KeptFailures()))
		time.Sleep(999 * time.Microsecond)
		run(t, b, 1, failWithNumber(50))
		require.Equal(t, 3, described)
		time.Sleep(time.Microsecond)
		for n := range 50 {
			run(t, b, 1, failWithNumber(51+n))
		}
		require.Equal(t, []string{"failure 1", "failure 2", "failure 51"}, messages(b.KeptFailures()))
		require.Equal(t, 4, described)
	})
}

func TestShadowReportsTheLastFailures(t *testing.T) {
	var told recorder
	b := breaker.New("b", told.attachTo(breaker.Config{ConsecutiveFailures: 3, Force: breaker.Shadow}))
	for n := range 3 {
		run(t, b, 1, failWithNumber(n))
	}
	c := told.changes()[0]
	require.Equal(t, breaker.Shadow, c.To)
	require.Equal(t, []string{"failure 0", "failure 1", "failure 2"}, messages(c.LastFailures))
	require.Equal(t, "1 failure fewer in a row would not have opened it", c.Margin)
	require.Empty(t, b.Explain(), "it refuses nothing")
}

func TestLogChangesWritesTheLastFailures(t *testing.T) {
	var log bytes.Buffer
	b := breaker.New("b", breaker.Config{ConsecutiveFailures: 2, OnChange: breakerlog.Changes(slog.New(slog.NewJSONHandler(&log, nil)))})
	run(t, b, 2, fail)
	b.Force(breaker.ForcedOpen, "")
	list := decodeLog(t, &log)
	require.Equal(t, "1 failure fewer in a row would not have opened it", list[0]["weir.breaker.margin"])
	e := refusal(t, b)
	require.Equal(t, breaker.ForcedOpen, e.State)
	require.Len(t, list[0]["weir.breaker.last_failures"], 2)
	require.Contains(t, list[0]["weir.breaker.last_failures"].([]any)[0], ` error`)
	require.NotContains(t, list[1], "weir.breaker.margin")
	require.NotContains(t, list[1], "weir.breaker.last_failures")
}

// A breaker whose failures have the longest texts takes at most 1.5 kB per failure, including
// the copy in the snapshot of the opening.
func TestKeptFailuresAreBoundedInBytes(t *testing.T) {
	const n = 200
	long := strings.Repeat("x", 10_000)
	used := func(keep int) int {
		c := breaker.Config{FailureRate: breaker.Off, ConsecutiveFailures: 100, KeepFailures: keep}
		c.DescribeFailure = func(_ context.Context, _ error, f *breaker.FailedCall) { f.Kind, f.Note = long, long }
		breakers := make([]*breaker.Breaker, n)
		before := heapInUse()
		for i := range breakers {
			b := breaker.New("b", c)
			for j := range 100 {
				_ = b.Run(bg(), func(context.Context) error { return errors.New(long[:j*10]) })
			}
			require.Equal(t, breaker.Open, b.State())
			breakers[i] = b
		}
		size := (heapInUse() - before) / n
		runtime.KeepAlive(breakers)
		return size
	}
	without := used(breaker.Off)
	for _, keep := range []int{1, 8, 100} {
		each := (used(keep) - without) / keep
		t.Logf("%d failures: %d bytes each", keep, each)
		require.Less(t, each, 1536)
	}
}

// TestTheLastFailuresOfManyGoroutines records failures from many goroutines, in an order that a
// lock decides, and compares those that are kept with the last ones of that order.
func TestTheLastFailuresOfManyGoroutines(t *testing.T) {
	synctest.Test(t, testTheLastFailuresOfManyGoroutines)
}

func testTheLastFailuresOfManyGoroutines(t *testing.T) {
	const goroutines, each = 8, 500
	b := breaker.New("b", breaker.Config{FailureRate: breaker.Off, KeepFailures: 16})
	lock := make(chan struct{}, 1)
	var order []string
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range each {
				p, err := b.Allow()
				if err != nil {
					t.Error(err)
					return
				}
				lock <- struct{}{}
				time.Sleep(time.Millisecond)
				text := strings.Repeat("x", len(order)%250) + "é"
				order = append(order, text[:min(len(text), 200)])
				p.Done(bg(), errors.New(text))
				<-lock
			}
		})
		all.Go(func() { // without the lock, in no order
			for range each {
				_ = b.Run(bg(), succeed)
				_ = b.Explain()
			}
		})
	}
	all.Wait()
	kept := b.KeptFailures()
	require.Len(t, order, goroutines*each)
	require.Len(t, kept, 16)
	for i, f := range kept {
		want := order[len(order)-16+i]
		require.Equal(t, strings.ToValidUTF8(want, ""), f.Message, i)
	}
}

// TestFailuresAreWholeWhileTheBreakerOpens records failures from many goroutines while the breaker
// opens and closes. Each failure that is shown must be one that was recorded, whole.
func TestFailuresAreWholeWhileTheBreakerOpens(t *testing.T) {
	b := breaker.New("b", breaker.Config{ConsecutiveFailures: 20, Cooldown: breaker.Off, Probes: 1, Recovery: breaker.Off, OnChange: func(c breaker.Change) {
		for _, f := range c.LastFailures {
			if f.Message != strings.Repeat(f.Note, 10) {
				t.Errorf("%q and %q do not belong together", f.Message, f.Note)
			}
		}
	}, DescribeFailure: func(_ context.Context, err error, f *breaker.FailedCall) { f.Note = err.Error()[:1] }})
	var all sync.WaitGroup
	for i := range 6 {
		text := strings.Repeat(string(rune('a'+i)), 10)
		all.Go(func() {
			for n := range 2000 {
				if n%40 == 39 {
					_ = b.Run(bg(), succeed)
				} else {
					_ = b.Run(bg(), func(context.Context) error { return errors.New(text) })
				}
				_ = b.Explain()
			}
		})
	}
	all.Wait()
}
