package fleet

import (
	"context"
	"crypto/sha1" // Redis identifies scripts by it
	"embed"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-go/weir/fleet/internal/pipeline"
	"github.com/weir-go/weir/limiter"
)

//go:embed scripts/*.lua
var scripts embed.FS

// script is the text of a script and its SHA-1, by which Redis knows it.
type script struct {
	text, sha string
}

var (
	resetScript    = newScript("reset")
	setRateScript  = newScript("setrate")
	throttleScript = newScript("throttle")
)

// decision returns a script that decides about each of its keys separately, and replies with the
// given number of values per key.
func (s *script) decision(answers int) *pipeline.Decision {
	return &pipeline.Decision{Text: s.text, SHA: s.sha, Answers: answers}
}

// newScript joins Lua files into one script.
func newScript(files ...string) *script {
	var text []byte
	for _, name := range files {
		part, err := scripts.ReadFile("scripts/" + name + ".lua")
		if err != nil {
			panic(err) // the files are embedded
		}
		text = append(append(text, part...), '\n')
	}
	sum := sha1.Sum(text)
	return &script{text: string(text), sha: hex.EncodeToString(sum[:])}
}

// newDecision returns the script that decides about some limits: begin.lua, one file per kind of
// limit, and decide.lua.
func newDecision(limits []limitSpec) *script {
	files := []string{"begin"}
	for _, limit := range limits {
		if !slices.Contains(files, limit.script) {
			files = append(files, limit.script)
		}
	}
	return newScript(append(files, "decide")...)
}

// backend takes and gives back tokens in Redis. The time is the server's if at is zero; other
// times are for tests.
type backend interface {
	// take takes n tokens from all limits, or from none. It returns the result of each limit. It
	// changes nothing if n is 0 or negative.
	take(ctx context.Context, k requestKey, n int, at time.Time) ([]limiter.Result, error)
	// refund gives back the tokens among n that still count, given the time since they were taken.
	refund(ctx context.Context, k requestKey, n int, age time.Duration, at time.Time) error
	// settle takes n tokens, whether there are as many or not, or gives back -n as refund does. It
	// does nothing if it was called with the same id before.
	settle(ctx context.Context, k requestKey, id string, n int, age time.Duration, at time.Time) error
}

// newBackend returns the quickest backend for the limits of s.
func newBackend(s *scriptBackend) backend {
	if len(s.limits) == 1 {
		switch limit := s.limits[0]; {
		case limit.cell != nil && limit.keySuffixes[0] == "" && limit.sharedBy == nil:
			return &cellBackend{namespace: s.namespace, cellMath: newCellMath(*limit.cell)}
		case limit.cell == nil && limit.cost.micros > 0 && limit.cost.numerator == 0:
			return newQuickBucket(s)
		}
	}
	return s
}

// scriptBackend decides about limits of all kinds by one script.
type scriptBackend struct {
	namespace
	script *script
	limits []limitSpec
}

func newScriptBackend(ns namespace, limits []limitSpec) *scriptBackend {
	return &scriptBackend{namespace: ns, limits: limits, script: newDecision(limits)}
}

func (s *scriptBackend) take(ctx context.Context, k requestKey, n int, at time.Time) ([]limiter.Result, error) {
	return s.eval(ctx, k, request{n: max(n, 0), at: at})
}

func (s *scriptBackend) refund(ctx context.Context, k requestKey, n int, age time.Duration, at time.Time) error {
	_, err := s.eval(ctx, k, request{n: -n, at: at, ages: []time.Duration{age}})
	return err
}

func (s *scriptBackend) settle(ctx context.Context, k requestKey, id string, n int, age time.Duration, at time.Time) error {
	reply, err := s.run(ctx, k, request{n: n, at: at, ages: []time.Duration{age}, settlement: id})
	return s.explainForeign(ctx, s.checkSettled(reply, err), k)
}

// checkSettled is checkLength for the reply to a settlement.
func (ns namespace) checkSettled(reply []int64, err error) error {
	if err = ns.checkLength(reply, err, 1); err == nil && !isWithin(reply[0], 0, 1) {
		return ns.invalidReply()
	}
	return err
}

// replayExtraMillis is added to the lifetime in ms of a key that was written at a given time,
// because keys expire by the server's clock.
const replayExtraMillis = int64(time.Hour / time.Millisecond)

// request is the input of a script.
type request struct {
	n    int       // tokens to take; negative to give back
	at   time.Time // zero for the server's time
	peek bool      // answer for n, but take nothing
	// the time since the tokens were taken: one for all limits, or one per limit
	ages []time.Duration
	// the id of a settlement, or "" if it is none
	settlement string
}

// age returns the age argument of the script.
func (r request) age() string {
	switch {
	case r.peek:
		return "-1"
	case len(r.ages) == 0:
		return "0"
	}
	var text []string
	for _, age := range r.ages {
		text = append(text, strconv.FormatInt(age.Microseconds(), 10))
	}
	return strings.Join(text, ",")
}

// input returns the keys and the arguments of the script for a request.
func (s *scriptBackend) input(k requestKey, r request) (keys []string, args []any) {
	keys = make([]string, 0, 2*len(s.limits)+1)
	args = make([]any, 0, 5+6*len(s.limits))
	if r.at.IsZero() {
		args = append(args, r.n, "", 0)
	} else {
		args = append(args, r.n, r.at.UnixMicro(), replayExtraMillis)
	}
	args = append(args, r.age(), rememberedMillis(r.settlement))
	for _, limit := range s.limits {
		keys = append(keys, s.keysOf(k, limit)...)
		args = append(append(args, limit.script), limit.args...)
		if limit.periods != nil {
			for _, moment := range limit.periods.around(r.at) {
				args = append(args, moment)
			}
		}
	}
	if r.settlement != "" {
		keys = append(keys, s.settlementKey(s.limits[0].tagFor(k), r.settlement))
	}
	return keys, args
}

// run runs the script. It runs it once more if it had the wrong periods, and so changed nothing.
func (s *scriptBackend) run(ctx context.Context, k requestKey, r request) ([]int64, error) {
	keys, args := s.input(k, r)
	reply, err := s.link.eval(ctx, s.script, keys, args)
	if err == nil && adjustPeriods(s.limits, reply) {
		keys, args = s.input(k, r)
		reply, err = s.link.eval(ctx, s.script, keys, args)
	}
	return reply, err
}

func (s *scriptBackend) eval(ctx context.Context, k requestKey, r request) ([]limiter.Result, error) {
	reply, err := s.run(ctx, k, r)
	if err != nil {
		return nil, s.explainForeign(ctx, err, k)
	}
	if err = s.checkLength(reply, err, resultLength*len(s.limits)); err != nil {
		return nil, err
	}
	results := make([]limiter.Result, 0, len(s.limits))
	for ; len(reply) >= resultLength; reply = reply[resultLength:] {
		r, valid := resultOf(reply)
		if !valid {
			return nil, s.invalidReply()
		}
		results = append(results, r)
	}
	return results, nil
}

// explainForeign is nameKinds for the limits of a request.
func (s *scriptBackend) explainForeign(ctx context.Context, err error, k requestKey) error {
	var keys, kinds []string
	for _, limit := range s.limits {
		keys, kinds = append(keys, s.keysOf(k, limit)[0]), append(kinds, limit.script)
	}
	return s.nameKinds(ctx, err, keys, kinds)
}

// keysOf returns the Redis keys of a limit. The first holds what was taken.
func (s *scriptBackend) keysOf(k requestKey, limit limitSpec) []string {
	base := s.keyBase(limit.tagFor(k))
	keys := make([]string, len(limit.keySuffixes))
	for i, suffix := range limit.keySuffixes {
		keys[i] = base + suffix
	}
	return keys
}

// stateKeys returns the Redis keys that hold what was taken of this key alone.
func (s *scriptBackend) stateKeys(k requestKey) (keys []string) {
	for _, limit := range s.limits {
		if limit.sharedBy == nil {
			keys = append(keys, s.keysOf(k, limit)[0])
		}
	}
	return keys
}

// resultLength is the number of values that a script returns per limit.
const resultLength = 5

// maxMicros and maxSeconds are the longest times that a time.Duration can hold.
const maxMicros, maxSeconds = int64(math.MaxInt64 / time.Microsecond), int64(math.MaxInt64/time.Second) - 1

// isWithin reports whether a number of a reply is in its range. A proxy or a module may reply
// anything.
func isWithin(value, least, most int64) bool { return least <= value && value <= most }

// resultOf converts the first result of a reply. It returns false if a number is out of range.
func resultOf(reply []int64) (limiter.Result, bool) {
	valid := isWithin(reply[0], 0, 1) && isWithin(reply[1], 1, maxBurst) && isWithin(reply[2], 0, reply[1]) &&
		isWithin(reply[3], -1, maxMicros) && isWithin(reply[4], 0, maxMicros) && (reply[0] == 0 || reply[3] == 0)
	r := limiter.Result{
		OK: reply[0] == 1, Limit: int(reply[1]), Remaining: int(reply[2]),
		RetryAfter: time.Duration(reply[3]) * time.Microsecond, ResetAfter: time.Duration(reply[4]) * time.Microsecond,
	}
	if reply[3] < 0 {
		r.RetryAfter = limiter.Never
	}
	return r, valid
}

// kindNames are the names of the kinds of limits, by their scripts.
var kindNames = map[string]string{
	"tokenbucket": "token-bucket", "fixedwindow": "fixed-window", "slidingwindow": "sliding-window",
	"slidinglog": "sliding-log", "throttle": "cl.throttle", "calendarquota": "calendar-quota",
}

// kindsByNumber are the scripts of the kinds by the numbers of kind.lua. 0 is unknown.
var kindsByNumber = []string{"", "tokenbucket", "fixedwindow", "slidingwindow", "slidinglog", "throttle", "calendarquota"}

var kindScript = newScript("kind")

// nameKinds returns err. But if it says that one of the keys holds a foreign value, and a limit of
// another kind has written that, nameKinds returns an error that names both kinds. The keys are
// those of limits with the given scripts.
func (ns namespace) nameKinds(ctx context.Context, err error, keys, scripts []string) error {
	if !errors.Is(err, ErrForeign) {
		return err
	}
	found, askErr := ns.link.eval(ctx, kindScript, keys, nil)
	if askErr != nil || len(found) != len(keys) {
		return err
	}
	for i, number := range found {
		if !isWithin(number, 1, int64(len(kindsByNumber)-1)) {
			continue
		}
		if writer := kindsByNumber[number]; writer != scripts[i] {
			return &StoreError{link: ns.link.name, Fault: faultForeign, kinds: [2]string{kindNames[writer], kindNames[scripts[i]]}}
		}
	}
	return err
}
