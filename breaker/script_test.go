package breaker_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
)

// script makes calls through a breaker at given times. A line has the form
//
//	seconds  calls  answers  state  [failure rate, successes, calls, failures, refused]
//
// as in "5.5 EES ..r open 66.7 0 2 2 1": at 5.5 s two calls fail, and a third one is refused that
// would have succeeded. Then the breaker is open and has these counts. A rate of −1 means too few
// calls to judge. The calls are
//
//	S E I   succeeds, fails, is ignored, at once
//	s e     the same, one second longer than SlowCall
//	A       acquires a permit and stays in flight
//	g b i   the oldest call in flight succeeds, fails, is ignored
//	-       none
//
// and the answers "." passed, "r" refused, "!" a result that did not count.
type script struct {
	t      *testing.T
	b      *breaker.Breaker
	config breaker.Config
	now    time.Time
	held   []*breaker.Permit
	told   *recorder
}

// recorder remembers the changes of a breaker.
type recorder struct {
	mu  sync.Mutex
	all []breaker.Change
}

// attachTo returns the config with the recorder as its OnChange.
func (r *recorder) attachTo(c breaker.Config) breaker.Config {
	c.OnChange = func(c breaker.Change) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, c)
	}
	return c
}

// changes returns all changes so far.
func (r *recorder) changes() []breaker.Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

func runScript(t *testing.T, c breaker.Config, lines ...string) *script {
	t.Helper()
	s := &script{t: t, config: c, now: t0, told: new(recorder)}
	if c.OnChange == nil {
		c = s.told.attachTo(c)
	}
	s.b = breaker.NewAt("b", c, t0)
	s.do(lines...)
	return s
}

func (s *script) do(lines ...string) {
	s.t.Helper()
	for _, line := range lines {
		f := strings.Fields(line)
		at, err := strconv.ParseFloat(f[0], 64)
		require.NoError(s.t, err, line)
		if t := t0.Add(time.Duration(at * float64(time.Second))); t.After(s.now) {
			s.now = t
		}
		answers := ""
		for _, call := range strings.TrimLeft(f[1], "-") {
			answers += s.call(call)
		}
		got := []string{f[0], f[1], answers, string(s.b.StateAt(s.now))}
		if answers == "" {
			got[2] = "-"
		}
		if len(f) > 4 {
			got = append(got, s.counts()...)
		}
		require.Equal(s.t, strings.Join(f, " "), strings.Join(got, " "))
	}
}

func (s *script) call(call rune) string {
	outcomes := map[rune]breaker.Outcome{
		'S': breaker.Success, 'E': breaker.Failure, 'I': breaker.Ignored, 's': breaker.Success, 'e': breaker.Failure,
		'g': breaker.Success, 'b': breaker.Failure, 'i': breaker.Ignored,
	}
	if strings.ContainsRune("gbi", call) {
		p := s.held[0]
		s.held = s.held[1:]
		return s.recordResult(p, outcomes[call])
	}
	p, err := s.b.AllowAt(s.now)
	if err != nil {
		require.ErrorIs(s.t, err, breaker.ErrOpen)
		return "r"
	}
	if call == 'A' {
		s.held = append(s.held, &p)
		return "."
	}
	if call == 's' || call == 'e' {
		s.now = s.now.Add(s.config.SlowCall + time.Second)
	}
	return s.recordResult(&p, outcomes[call])
}

func (s *script) recordResult(p *breaker.Permit, o breaker.Outcome) string {
	if p.RecordAt(s.now, o) {
		return "."
	}
	return "!"
}

func (s *script) counts() []string {
	c := s.b.CountsAt(s.now)
	rate := "-1"
	if least := s.config.MinCalls; c.Calls() >= int64(least) && c.Calls() > 0 || s.b.StateAt(s.now) == breaker.Open && c.Calls() > 0 {
		rate = strconv.FormatFloat(100*c.FailureRate(), 'g', 3, 64)
	}
	return []string{rate, numberText(c.Successes), numberText(c.Calls()), numberText(c.Failures), numberText(c.Refused)}
}

func numberText(n int64) string { return fmt.Sprint(n) }

// requireSlow requires the slow calls of the counts.
func (s *script) requireSlow(want int64) {
	s.t.Helper()
	require.Equal(s.t, want, s.b.CountsAt(s.now).Slow)
}

// changes are the states that the breaker has entered, in order.
func (s *script) changes() (to []breaker.State) {
	for _, c := range s.told.changes() {
		to = append(to, c.To)
	}
	return to
}

func secondsOf(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Comments of tests name the numbered scenarios of the project for breakers. Those of part B check
// what the tests of other breakers check. From B87 on, they check what no other breaker passes. A
// comment about another breaker says what one in wide use does wrong.

// scenarioConfig is the config of most of the first scenarios of part B.
func scenarioConfig() breaker.Config {
	return breaker.Config{
		FailureRate: 0.5, SlowRate: 0.5, SlowCall: 4 * time.Second, Window: 20 * time.Second, Buckets: 20,
		MinCalls: 5, Probes: 4, Cooldown: 5 * time.Second, Recovery: breaker.Off,
	}
}

// configWithoutSlow is scenarioConfig with calls that cannot be slow.
func configWithoutSlow() breaker.Config {
	c := scenarioConfig()
	c.SlowCall, c.SlowRate = 0, 0
	return c
}
