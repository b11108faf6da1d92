package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// failWithNumber returns a function that fails with the number as its error.
func failWithNumber(n int) func(context.Context) error {
	return func(context.Context) error { return fmt.Errorf("failure %d", n) }
}

// messages returns the messages of the failures.
func messages(list []breaker.FailedCall) (m []string) {
	for _, f := range list {
		m = append(m, f.Message)
	}
	return m
}

// refusal returns the error with which the breaker refuses a call.
func refusal(t *testing.T, b *breaker.Breaker) *breaker.OpenError {
	t.Helper()
	var e *breaker.OpenError
	require.ErrorAs(t, b.Run(bg(), succeed), &e)
	return e
}

func TestAnOpeningShowsTheLastFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told recorder
		b := breaker.New("b", told.attachTo(breaker.Config{ConsecutiveFailures: 10, SlowCall: time.Minute, Recovery: breaker.Off, Probes: 1, MinCalls: 30}))
		began := time.Now()
		for n := range 10 {
			run(t, b, 1, func(ctx context.Context) error { time.Sleep(time.Second); return failWithNumber(n)(ctx) })
		}
		c := told.changes()[0]
		require.Equal(t, []string{
			"failure 2", "failure 3", "failure 4", "failure 5", "failure 6", "failure 7", "failure 8", "failure 9",
		}, messages(c.LastFailures))
		for i, f := range c.LastFailures {
			require.Equal(t, "error", f.Kind)
			require.Equal(t, time.Second, f.Duration)
			require.True(t, f.Time.Equal(began.Add(time.Duration(i+3)*time.Second)), f.Time)
			require.Empty(t, f.Note)
		}
		e := refusal(t, b)
		require.Equal(t, c.LastFailures, e.LastFailures)
		require.Equal(t, "1 failure fewer in a row would not have opened it", e.Margin)
		require.Equal(t, e.Margin, c.Margin)
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = b.Run(bg(), succeed) }), "refusals share the error")
		lines := strings.Split(b.Explain(), "\n")
		require.Equal(t, c.Reason+"; "+c.Margin, lines[0])
		require.Len(t, lines, 9)
		require.Equal(t, c.LastFailures[7].String(), lines[1], "the newest comes first")

		time.Sleep(6 * time.Second)
		run(t, b, 1, failWithNumber(10)) // a probe
		require.Equal(t, "failure 10", refusal(t, b).LastFailures[7].Message)
		require.Equal(t, "failure 9", c.LastFailures[7].Message, "an opening is frozen")
		require.Empty(t, refusal(t, b).Margin, "probes have none")
		time.Sleep(6 * time.Second)
		run(t, b, 1, succeed)
		require.Equal(t, breaker.Closed, b.State())
		require.Empty(t, b.Explain())
		require.Empty(t, told.changes()[len(told.changes())-1].LastFailures, "it closes")
		run(t, b, 10, failWithNumber(11))
		require.Len(t, refusal(t, b).LastFailures, 8)
		require.NotContains(t, messages(refusal(t, b).LastFailures), "failure 10", "those before it closed are forgotten")
	})
}

func TestHalfOpenAndRecoveringRefusalsShowTheFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := breaker.New("b", breaker.Config{ConsecutiveFailures: 2, Probes: 1, MinCalls: 4})
		run(t, b, 2, fail)
		want := refusal(t, b).LastFailures
		require.Len(t, want, 2)
		time.Sleep(5 * time.Second)
		p, err := b.Allow()
		require.NoError(t, err)
		e := refusal(t, b)
		require.Equal(t, breaker.HalfOpen, e.State)
		require.Equal(t, want, e.LastFailures)
		p.Record(bg(), nil, breaker.Success)
		require.Equal(t, breaker.Recovering, b.State())
		_, err = b.Allow()
		require.NoError(t, err, "the first call of a round passes")
		require.Equal(t, want, refusal(t, b).LastFailures)
		b.Force(breaker.ForcedOpen, "")
		require.Empty(t, refusal(t, b).LastFailures, "it is open by hand")
		require.Equal(t, "forced", b.Explain())
	})
}

// typedError is an error of a distinct type.
type typedError struct{ error }

func (e typedError) Error() string { return e.error.Error() } // panics if it is nil

func TestWhatIsKeptOfAFailure(t *testing.T) {
	huge := strings.Repeat("x", 10<<20)
	panics := func(context.Context) error { panic("no") }
	returns := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	for name, c := range map[string]struct {
		call          func(context.Context) error
		kind, message string
	}{
		"plain":            {returns(errors.New("down")), "error", "down"},
		"wrapped":          {returns(fmt.Errorf("a: %w", fs.ErrExist)), "error", "a: file already exists"},
		"typed":            {returns(fmt.Errorf("a: %w", &fs.PathError{Op: "open", Path: "x", Err: fs.ErrExist})), "*fs.PathError", "a: open x: file already exists"},
		"joined":           {returns(errors.Join(typedError{errors.New("one")}, errors.New("two"))), "breaker_test.typedError", "one\ntwo"},
		"joined nothing":   {returns(fmt.Errorf("%w, %w", nil, nil)), "error", "%!w(<nil>), %!w(<nil>)"},
		"deadline":         {returns(context.DeadlineExceeded), "context.deadlineExceededError", "context deadline exceeded"},
		"huge":             {returns(errors.New(huge)), "error", huge[:200]},
		"cut in character": {returns(errors.New(strings.Repeat("x", 199) + "é")), "error", huge[:199]},
		"not UTF-8":        {returns(errors.New("a\xff\xfeb")), "error", "a\uFFFDb"},
		"longer as UTF-8":  {returns(errors.New(strings.Repeat("\xffa", 100))), "error", strings.Repeat("\uFFFDa", 50)},
		"continuation":     {returns(errors.New(strings.Repeat("\x80", 300))), "error", "\uFFFD"},
		"Error panics":     {returns(typedError{}), "breaker_test.typedError", "the error panicked"},
		"panic":            {panics, "panic", ""},
	} {
		b := breaker.New("b", breaker.Config{ConsecutiveFailures: 1})
		func() {
			defer func() { _ = recover() }()
			_ = b.Run(bg(), c.call)
		}()
		kept := refusal(t, b).LastFailures
		require.Len(t, kept, 1, name)
		require.Equal(t, c.kind, kept[0].Kind, name)
		require.Equal(t, c.message, kept[0].Message, name)
		require.True(t, utf8.ValidString(kept[0].Message), name)
		require.Empty(t, kept[0].Note, name)
	}
}

func TestFailuresWithoutAnError(t *testing.T) {
	last := func(b *breaker.Breaker) breaker.FailedCall {
		list := refusal(t, b).LastFailures
		require.Len(t, list, 1)
		return list[0]
	}
	c := breaker.Config{ConsecutiveFailures: 1}
	b := breaker.New("b", c)
	p, _ := b.Allow()
	require.True(t, p.Record(bg(), nil, breaker.Failure))
	require.Equal(t, "recorded", last(b).Kind)
	b = breaker.New("b", c)
	_, err := breaker.DoResult(bg(), b, func(context.Context) (int, error) { return 503, nil }, func(int, error) breaker.Outcome { return breaker.Failure })
	require.NoError(t, err)
	require.Equal(t, "result", last(b).Kind)
	b = breaker.New("b", c)
	p, _ = b.Allow()
	require.True(t, p.Record(bg(), errors.New("status 503"), breaker.Failure))
	require.False(t, p.Record(bg(), nil, breaker.Failure), "it is used up")
	require.Equal(t, "status 503", last(b).Message)
	b = breaker.New("b", c)
	p, _ = b.Allow()
	require.True(t, p.Record(bg(), (*fs.PathError)(nil), breaker.Failure))
	require.Equal(t, "the error panicked", last(b).Message)
	p = breaker.Permit{}
	require.False(t, p.Record(bg(), nil, breaker.Failure), "the zero permit is used up")
}

func TestOnlyFailuresThatCountAreKept(t *testing.T) {
	b := breaker.New("b", breaker.Config{ConsecutiveFailures: 3, Classify: breaker.Ignore(fs.ErrExist).Accept(fs.ErrClosed)})
	cancelled, cancel := context.WithCancel(bg())
	run(t, b, 1, failWithNumber(1))
	run(t, b, 1, func(context.Context) error { return fs.ErrExist })
	late, _ := b.Allow()
	require.Error(t, b.Run(cancelled, func(context.Context) error { cancel(); return errors.New("cancelled") }))
	run(t, b, 2, failWithNumber(2))
	require.Equal(t, []string{"failure 1", "failure 2", "failure 2"}, messages(refusal(t, b).LastFailures))
	require.False(t, late.Done(bg(), errors.New("late")))
	b.OpenFor(time.Minute)
	require.Empty(t, refusal(t, b).LastFailures, "it was opened by hand")
	require.Equal(t, "opened by OpenFor for 1m0s", b.Explain())
}

func TestAFailedCallInOneLine(t *testing.T) {
	at := time.Date(2026, 1, 2, 15, 4, 5, 120e6, time.UTC)
	for want, f := range map[string]breaker.FailedCall{
		`15:04:05.120 panic`: {Time: at, Kind: "panic"},
		`15:04:05.120 *net.OpError after 1.2s: "dial tcp: \"refused\"" (trace 4bf92f\nretried)`: {
			Time: at, Kind: "*net.OpError", Duration: 1200*time.Millisecond + 300, Message: `dial tcp: "refused"`, Note: "trace 4bf92f\nretried",
		},
	} {
		require.Equal(t, want, f.String())
	}
}
