package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-go/weir/limiter"
)

type waitConfig struct {
	Name  string `json:"name"`
	Limit number `json:"limit"` // per second
	Burst int    `json:"burst"`
}

type waitStep struct {
	At      int64  `json:"at_ns"` // since the limiter was made
	Op      string `json:"op"`
	N       int    `json:"n"`
	Sleep   int64  `json:"ns"`
	Timeout *int64 `json:"timeout_ns"`
	Cancel  *int64 `json:"cancel_after_ns"`

	Blocked *int64  `json:"blocked_ns"`
	Error   *string `json:"error"`
	Tokens  *number `json:"tokens"`
}

// xtimeWaitReplayer replays WaitN of golang.org/x/time/rate, one caller after the other. Its
// answers are compared with its arithmetic bit by bit. Those of a TokenBucket may differ by two
// nanoseconds, because one of the two truncates and the other rounds up.
var xtimeWaitReplayer = inBubble(replaying("at_ns op n ns timeout_ns cancel_after_ns", func(r *run, c waitConfig) func(waitStep) {
	w := &waitReplay{
		run: r, began: time.Now(),
		reference: rateLimiter{limit: float64(c.Limit), burst: c.Burst, tokens: float64(c.Burst), last: math.MinInt64 / 4},
	}
	config := limiter.TokenBucketConfig{Rate: perSecond(float64(c.Limit)), Burst: c.Burst}
	if c.Burst < 1 || config.Validate() != nil {
		r.skipRest(refusedRate)
		return nil
	}
	w.weir = limiter.NewTokenBucket(config)
	return w.step
}))

func inBubble(p replayer) replayer {
	return replayer{inputs: p.inputs, replay: func(r *run) {
		synctest.Test(r.t, func(t *testing.T) {
			r.t = t
			p.replay(r)
		})
	}}
}

// advanceBubble advances the clock of the bubble.
func advanceBubble(d time.Duration) { time.Sleep(d) }

type waitReplay struct {
	*run
	began     time.Time
	at        int64 // the time of the reference
	reference rateLimiter
	weir      *limiter.TokenBucket
}

func (w *waitReplay) step(s waitStep) {
	if s.At != w.at {
		w.mismatch("at_ns is %d, want %d", s.At, w.at)
		return
	}
	time.Sleep(time.Until(w.began.Add(time.Duration(s.At))))
	switch s.Op {
	case "sleep":
		w.at += s.Sleep
		checkAbsent(w.run, "blocked_ns", s.Blocked)
		checkAbsent(w.run, "error", s.Error)
		time.Sleep(time.Until(w.began.Add(time.Duration(w.at))))
	case "wait":
		w.wait(s)
	default:
		w.mismatch("op is %q", s.Op)
	}
	checkSame(w.run, "tokens", s.Tokens, number(w.reference.tokensAt(w.at)))
	checkClose(w.run, "tokens", s.Tokens, w.weir.Tokens(), 1e-6+4e-9*w.reference.limit)
}

func (w *waitReplay) wait(s waitStep) {
	if w.isTie(s) {
		w.skipRest(floatEdge)
		return
	}
	blocked, failed := w.referenceWait(s)
	checkSame(w.run, "blocked_ns", s.Blocked, blocked)
	if failed == "" {
		checkAbsent(w.run, "error", s.Error)
	} else {
		checkSame(w.run, "error", s.Error, failed)
	}
	if w.stopped {
		return
	}
	w.at += blocked
	before := time.Now()
	err := w.weirWait(s)
	if took := time.Since(before); reasonOf(s, err) != failed || (took-time.Duration(blocked)).Abs() > 2 {
		w.mismatch("weir blocked %d ns and has error %v: %s", took, err, w.seq.Steps[w.run.at])
	}
}

func (w *waitReplay) referenceWait(s waitStep) (blocked int64, failed string) {
	if s.N > w.reference.burst && !math.IsInf(w.reference.limit, 1) {
		return 0, fmt.Sprintf("rate: Wait(n=%d) exceeds limiter's burst %d", s.N, w.reference.burst)
	}
	longest := int64(math.MaxInt64)
	if s.Timeout != nil {
		longest = *s.Timeout
	}
	r := w.reference.reserve(s.At, s.N, time.Duration(longest))
	if !r.ok {
		return 0, fmt.Sprintf("rate: Wait(n=%d) would exceed context deadline", s.N)
	}
	if s.Cancel != nil && *s.Cancel < r.delay(s.At) {
		w.reference.cancel(s.At+*s.Cancel, r)
		return *s.Cancel, context.Canceled.Error()
	}
	return r.delay(s.At), ""
}

// isTie reports whether chance or a nanosecond decides what comes first.
func (w *waitReplay) isTie(s waitStep) bool {
	now := w.reference
	due := now.reserve(s.At, s.N, math.MaxInt64).delay(s.At)
	near := func(end *int64) bool { return end != nil && (*end <= 2 || max(*end-due, due-*end) <= 2) }
	return near(s.Timeout) || near(s.Cancel)
}

func (w *waitReplay) weirWait(s waitStep) error {
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	if s.Timeout != nil {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(*s.Timeout))
		defer cancel()
	}
	if s.Cancel != nil {
		defer time.AfterFunc(time.Duration(*s.Cancel), cancel).Stop()
	}
	return w.weir.Wait(ctx, s.N)
}

// reasonOf returns the text that the reference has for an error of weir.
func reasonOf(s waitStep, err error) string {
	var limited *limiter.LimitedError
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("rate: Wait(n=%d) would exceed context deadline", s.N)
	case errors.As(err, &limited) && limited.Reason == limiter.OverLimit:
		return fmt.Sprintf("rate: Wait(n=%d) exceeds limiter's burst %d", s.N, limited.Limit)
	}
	return err.Error()
}
