package conformance_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/internal/gatehook"
	"github.com/weir-go/weir/window"
)

// byHand changes breakers at the times of a replay.
var byHand = gatehook.Replay.(gatehook.Replays[breaker.Breaker, breaker.State])

// resilience4j replays Resilience4j's CircuitBreakerStateMachine with a Breaker. Ours decides what becomes of the calls; hands and
// timers lead theirs by r4jReplay's own account, to which ours has to agree.
var resilience4j = replaying("i now_ms op permit dur_ns class bad ms to for_ms", func(r *run, c r4jConfig) func(r4jStep) {
	config := c.ours()
	if config.Validate() != nil {
		r.leave(noRate)
		return nil
	}
	x := &r4jReplay{run: r, c: c, now: time.UnixMilli(c.Start), permits: map[int]*r4jPermit{}, ends: r4jEnds(r.seq.Steps)}
	x.ours = breaker.NewAt("cb", config, x.now.Truncate(time.Second)) // their windows lie on whole seconds
	byHand.ResetAt(x.ours, x.now)
	x.state, x.evidence = "CLOSED", x.window()
	x.force(c.Initial, nil)
	return x.step
}, coherentR4j)

// r4jReplay is theirs and ours. Of theirs it knows what state it is in and until when, as far as its timers go.
type r4jReplay struct {
	*run
	c       r4jConfig
	now     time.Time
	ours    *breaker.Breaker
	permits map[int]*r4jPermit
	ends    map[int]r4jStep // by permit, the step that finishes it

	state   string
	epoch   int // states so far
	entered time.Time
	until   time.Time
	probed  bool // a call passed when the state began
	attempt int
	events  []string

	evidence *window.Calls // what is judged while closed, for it ages while open
	aging    bool
	told     [2]bool       // of failures and slow calls: that the threshold was reached
	refused  int64         // calls, as said last
	carried  int64         // Open: of which in the state before
	kept     window.Counts // Open: those of the state before, if they do not age
	enough   int           // Open: the fewest calls of which there was a rate
}

type r4jPermit struct {
	ours  breaker.Permit
	state string
	epoch int
	used  bool
}

// r4jEnds finds the step that finishes each permit.
func r4jEnds(steps []json.RawMessage) map[int]r4jStep {
	ends := map[int]r4jStep{}
	for _, raw := range slices.Backward(steps) {
		var s r4jStep
		if json.Unmarshal(raw, &s) != nil {
			continue
		}
		switch s.Op {
		case "success", "error", "result", "release":
			ends[s.Permit] = s
		}
	}
	return ends
}

func (x *r4jReplay) window() *window.Calls {
	if x.c.Window == "COUNT_BASED" {
		return nil
	}
	shape := window.CallsConfig{Span: time.Duration(x.c.Size) * time.Second, Buckets: x.c.Size, Slow: time.Duration(x.c.SlowCall)}
	return window.NewCallsAt(shape, x.now.Truncate(time.Second))
}

func (x *r4jReplay) step(s r4jStep) {
	if s.Now != x.now.UnixMilli() {
		x.fault("now_ms is %d, want %d", s.Now, x.now.UnixMilli())
		return
	}
	x.events = []string{}
	failed := ""
	switch s.Op {
	case "tryAcquire":
		x.acquire(s)
	case "success", "error", "result", "release":
		x.finish(s)
	case "advance":
		x.advance(s)
	case "transition":
		failed = x.transition(s)
	case "reset":
		x.reset()
	default:
		x.fault("op is %q", s.Op)
	}
	if x.stopped {
		return
	}
	if s.Op != "tryAcquire" {
		none(x.run, "ok", s.OK)
	}
	if failed == "" {
		none(x.run, "error", s.Error)
	} else {
		same(x.run, "error", s.Error, failed)
	}
	x.compare(s)
}

func (x *r4jReplay) acquire(s r4jStep) {
	if x.state == "OPEN" && x.now.After(x.until) {
		x.enter("HALF_OPEN", x.now, 0)
	}
	var err error
	p := &r4jPermit{state: x.state, epoch: x.epoch}
	if p.ours, err = x.ours.AllowAt(x.now); err == nil {
		x.permits[s.I] = p
		x.probed = x.probed || x.state == "HALF_OPEN" && x.entered.Equal(x.now)
		x.backdate(s)
	} else if x.state != "FORCED_OPEN" {
		x.events = append(x.events, "NOT_PERMITTED")
	}
	same(x.run, "ok", s.OK, err == nil)
}

// backdate takes a permit anew at such a time that the call will have taken as long as the trace says. The two do not always
// agree: there the times that calls took are made up.
func (x *r4jReplay) backdate(s r4jStep) {
	end, ok := x.ends[s.I]
	if !ok {
		return
	}
	slow := time.Duration(x.c.SlowCall)
	done := time.UnixMilli(end.Now)
	if (done.Sub(x.now) > slow) == (time.Duration(end.Took) > slow) {
		return
	}
	start := done.Add(-time.Duration(end.Took))
	if x.state == "HALF_OPEN" && !x.until.IsZero() && !start.Before(x.until) {
		return // that is over by then, and the result will not count
	}
	p := x.permits[s.I]
	p.ours.RecordAt(x.now, breaker.Ignored)
	var err error
	if p.ours, err = x.ours.AllowAt(start); err != nil {
		x.fault("ours refuses at another time: %v", err)
	}
}

func (x *r4jReplay) finish(s r4jStep) {
	p, ok := x.permits[s.Permit]
	idle := x.state == "FORCED_OPEN" || x.state == "DISABLED" // theirs does not listen
	if !ok || p.used {
		if !idle {
			x.leave(noPermit)
		}
		return
	}
	p.used = true
	same(x.run, "permit_state", s.PermitState, p.state)
	outcome, event := s.outcome()
	counted := p.ours.RecordAt(x.now, outcome)
	switch late := p.epoch != x.epoch; {
	case idle:
		return
	case late && counted:
		x.fault("ours counts a result from an earlier state")
		return
	case late:
		x.leave(lateResult)
		return
	case !counted:
		x.fault("ours does not count a result")
		return
	}
	if event != "" {
		x.events = append(x.events, event)
	}
	if outcome != breaker.Ignored {
		x.judge(s, outcome)
	}
}

// outcome is what a finished call means, and the event for it.
func (s r4jStep) outcome() (breaker.Outcome, string) {
	switch {
	case s.Op == "release":
		return breaker.Ignored, ""
	case s.Op == "error" && s.Class == "ignored":
		return breaker.Ignored, "IGNORED_ERROR"
	case s.Op == "error" && s.Class == "recorded", s.Op == "result" && s.Bad:
		return breaker.Failure, "ERROR"
	}
	return breaker.Success, "SUCCESS"
}

// judge follows ours into the state to which a result led.
func (x *r4jReplay) judge(s r4jStep, outcome breaker.Outcome) {
	if x.evidence != nil {
		x.evidence.RecordAt(x.now, outcome, time.Duration(s.Took))
	}
	if x.state == "METRICS_ONLY" {
		x.announce(x.ours.CountsAt(x.now))
	}
	switch to := names[x.ours.StateAt(x.now)]; {
	case to == x.state:
	case to == "OPEN":
		x.kept = x.ours.CountsAt(x.now)
		if x.state == "CLOSED" {
			x.announce(x.kept)
		}
		x.attempt++
		if x.c.cut(x.attempt) {
			x.leave(backoffCut)
		}
		x.enter("OPEN", x.now, x.c.wait(x.attempt))
	default:
		x.enter(to, x.now, 0)
	}
}

func (x *r4jReplay) compare(s r4jStep) {
	same(x.run, "state", s.State, x.state)
	ours := names[x.ours.StateAt(x.now)]
	waits := x.state == "OPEN" && x.now.After(x.until) // for a call, to be half-open
	if ours != x.state && !waits {
		x.fault("ours is %s: %s", ours, x.seq.Steps[x.at])
		return
	}
	if ours != x.state {
		x.part(byClock)
	}
	c, enough := x.ours.CountsAt(x.now), x.fewest(x.state)
	switch x.state {
	case "OPEN":
		refused := x.carried + c.Refused
		if waits { // ours begins to count anew when it is half-open, and theirs refuses no more
			refused = x.refused
		}
		if c = x.kept; x.aging {
			c = x.evidence.CountsAt(x.now)
		}
		c.Refused, enough = refused, x.enough
	case "FORCED_OPEN", "DISABLED":
		c = window.Counts{Refused: c.Refused}
	}
	x.refused = c.Refused
	same(x.run, "buffered", s.Buffered, c.Calls())
	same(x.run, "successful", s.Successful, c.Successes)
	same(x.run, "failed", s.Failed, c.Failures)
	same(x.run, "slow", s.SlowCalls, c.Slow)
	same(x.run, "slow_failed", s.SlowFailed, c.SlowFailures)
	same(x.run, "not_permitted", s.NotPermitted, c.Refused)
	failure, slow := float32(-1), float32(-1)
	if c.Calls() >= int64(enough) {
		failure, slow = percent(c.Failures, c.Calls()), percent(c.Slow, c.Calls())
	}
	sameRate(x.run, "failure_rate", s.FailureRate, failure)
	sameRate(x.run, "slow_rate", s.SlowRate, slow)
	same(x.run, "events", s.Events, x.events)
}

// Four in five of the sequences that Resilience4j finished call by call replay wholly.
func TestMostOfResilience4jReplays(t *testing.T) {
	replayed, all := 0, 0
	for _, seq := range read(t, "testdata/resilience4j"+suffix) {
		var c r4jConfig
		require.NoError(t, json.Unmarshal(seq.Config, &c))
		if c.Discipline != "sequential" && c.Discipline != "scripted" {
			continue
		}
		all++
		if r := replayOne(t, resilience4j, seq); r.left == "" && len(r.faults) == 0 {
			replayed++
		}
	}
	fmt.Fprintf(t.Output(), "resilience4j: of the sequential and scripted sequences, %d of %d\n", replayed, all)
	require.GreaterOrEqual(t, replayed*10, all*8)
}
