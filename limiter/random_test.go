package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter"
)

// TestEveryVerbOfEveryLimiterAgainstAnOracle calls all methods of all limiters at random, while
// callers wait. It compares each answer, and the time at which each waiter is served or leaves,
// with simple oracles. WEIR_RANDOM_OPERATIONS makes it longer.
func TestEveryVerbOfEveryLimiterAgainstAnOracle(t *testing.T) {
	const each = 400
	operations := testenv.Repeat(400_000, 100_000)
	if s := os.Getenv("WEIR_RANDOM_OPERATIONS"); s != "" {
		var err error
		operations, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	// With more threads, waiters of two Joints that wake at the same time may refuse each other,
	// and then give back the oldest tokens of a window.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	began := time.Now()
	seeds := []uint64{1566} // once failed
	for seed := range uint64(operations / each) {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			w := &randomTest{T: t, Rand: rand.New(rand.NewPCG(seed, 17)), seed: seed, began: time.Now()}
			w.build()
			for w.steps = range each {
				w.step()
			}
			w.cancelWaits()
		})
	}
	t.Logf("%d operations in %s", operations, time.Since(began).Round(ms))
}

// randomTest holds all limiters with their oracles.
type randomTest struct {
	*testing.T
	*rand.Rand
	seed           uint64
	grain          time.Duration // resolution of times
	steps          int
	began          time.Time
	settled        time.Duration // all events up to this time have been checked
	subjects       []*testedLimiter
	waitingCallers []*waitingCaller

	mu     sync.Mutex
	events []event
}

// event is the end of a wait.
type event struct {
	who *waitingCaller
	at  time.Duration
	err error
}

// testedLimiter is a limiter with its methods and its oracle. Missing methods are nil.
type testedLimiter struct {
	*limiterNode
	takers   []limiter.TimedLimiter // the limiter, and Joints of it alone
	waiters  []limiter.WaitLimiter
	unending bool // waits have no maximum
	foreign  bool // of another package: a wait of at most 0 has a context that is done
	hold     func(d time.Duration)
	change   func()
	refundAt func(taken time.Duration, n int)
	reserve  func()
}

func (w *randomTest) now() time.Duration { return time.Since(w.began) }

// sleep advances the time of the bubble.
func (w *randomTest) sleep(d time.Duration) { time.Sleep(d) }

func (w *randomTest) check(ok bool, format string, args ...any) {
	w.Helper()
	if !ok {
		w.Fatalf("seed %d, operation %d, at %s: %s", w.seed, w.steps, w.now(), fmt.Sprintf(format, args...))
	}
}

// randomTime returns a random time of up to a few tokens.
func (w *randomTest) randomTime() time.Duration {
	return time.Duration(w.Int64N(int64(3*sec))) / w.grain * w.grain
}

func (w *randomTest) step() {
	s := w.subjects[w.IntN(len(w.subjects))]
	switch w.IntN(20) {
	case 0, 1, 2, 3, 4:
		w.wait(s)
	case 5:
		w.cancel()
	case 6:
		w.refund(s)
	case 7:
		if s.refundAt != nil {
			s.refundAt(w.now()-w.randomTime(), 1+w.IntN(3))
		}
	case 8:
		if s.hold != nil && w.IntN(2) == 0 {
			s.hold(w.randomTime() / 2 / w.grain * w.grain)
		}
	case 9, 10:
		if s.change != nil {
			s.change()
		}
	case 11, 12:
		if s.reserve != nil {
			s.reserve()
		}
	default:
		w.take(s)
	}
	w.checkResults()
	if w.IntN(3) == 0 {
		w.sleep(w.randomTime() / time.Duration(1+w.IntN(20)) / w.grain * w.grain)
		w.checkResults()
	}
}

// cancelWaits cancels all waits.
func (w *randomTest) cancelWaits() {
	for _, g := range w.waitingCallers {
		g.gone = true
		g.leave()
	}
	w.checkResults()
	for _, s := range w.subjects {
		w.check(len(s.queue) == 0, "%s: a caller still waits", s.name)
	}
}

func (w *randomTest) take(s *testedLimiter) {
	if len(s.takers) == 0 {
		return
	}
	n, at := w.IntN(s.most()+2), w.now()
	room, blocked := s.room(at), len(s.queue) > 0 || s.busy()
	full := s.full != nil && n > 0 && s.full(at, 0)
	doubtful := s.full != nil && s.full(at, toleratedDelay)
	r := s.takers[w.IntN(len(s.takers))].Take(n)
	may := n <= s.most() && !blocked && !full && room > float64(n)-roundingError
	must := may && !doubtful && room > float64(n)+roundingError
	w.check(r.OK || !must, "%s: Take(%d) is refused of %v: %+v", s.name, n, room, r)
	w.check(!r.OK || may, "%s: Take(%d) is allowed of %v (a caller waits: %t)", s.name, n, room, blocked)
	w.check((n > s.most()) == (r.RetryAfter == limiter.Never), "%s: Take(%d) of %v: %+v", s.name, n, room, r)
	if !r.OK && n > 0 {
		s.refuse(at, n)
	}
	if r.OK && n > 0 {
		s.limiterNode.take(at, n)
	}
	left := s.room(at)
	if left > 1e9 || full || (!r.OK && n > 0) { // the refusal may be counted
		return
	}
	most := math.Floor(max(left, 0) + roundingError)
	w.check(float64(r.Remaining) <= most || blocked, "%s: %d remain of %v", s.name, r.Remaining, left)
	w.check(float64(r.Remaining) >= math.Floor(max(left, 0)-roundingError) || blocked, "%s: %d remain of %v", s.name, r.Remaining, left)
}

// waitAndRecord records the result of a wait, and when it ended.
func (w *randomTest) waitAndRecord(g *waitingCaller, wait func() error) {
	err := wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event{g, w.now(), err})
}

func (w *randomTest) wait(s *testedLimiter) {
	n, limit := 1+w.IntN(s.most()), limiter.Never
	g := &waitingCaller{n: n, until: -1, where: s.limiterNode}
	ctx, leave := context.WithCancel(w.Context())
	g.leave = leave
	switch w.IntN(4) {
	case 0:
		limit = w.randomTime()
		if s.unending {
			limit = limiter.Never
			break
		}
		g.until = w.now() + limit
	case 1:
		g.until = w.now() + w.randomTime()
		ctx, g.leave = context.WithDeadline(ctx, w.began.Add(g.until))
	}
	at := w.now()
	room := s.room(at)
	full := s.full != nil && s.full(at, 0)
	doubtful := s.full != nil && s.full(at, toleratedDelay)
	must := len(s.queue) == 0 && !s.busy() && !doubtful && room > float64(n)+roundingError && (limit == 0 && !s.foreign || g.until != at)
	s.queue = append(s.queue, g)
	w.waitingCallers = append(w.waitingCallers, g)
	l := s.waiters[w.IntN(len(s.waiters))]
	go w.waitAndRecord(g, func() error {
		defer leave()
		return limiter.WaitAtMost(ctx, l, n, limit)
	})
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, e := range w.events {
		if e.who != g || e.err == nil {
			continue
		}
		// It was refused at once, because of the time or because its key has no room.
		w.check(!must, "%s: Wait(%d) of %v: %v", s.name, n, room, e.err)
		w.check(limit < limiter.Never || g.until >= 0 || doubtful, "%s: Wait(%d) of %v for ever: %v", s.name, n, room, e.err)
		w.check(errors.Is(e.err, limiter.ErrLimited) || g.until == at, "%s: %v", s.name, e.err)
		w.removeCaller(g)
		w.events = append(w.events[:i], w.events[i+1:]...)
		return
	}
	w.check(!full || room < float64(n)+roundingError, "%s: a caller waits for a key without room", s.name)
}

func (w *randomTest) cancel() {
	if len(w.waitingCallers) > 0 {
		g := w.waitingCallers[w.IntN(len(w.waitingCallers))]
		g.gone = true
		g.leave()
	}
}

func (w *randomTest) refund(s *testedLimiter) {
	if len(s.takers) > 0 && !s.unending {
		n := 1 + w.IntN(3)
		s.room(w.now())
		s.takers[0].Take(0) // moves windows to the current time, which a refund does not
		s.limiterNode.refund(n)
		limiter.Refund(s.takers[w.IntN(len(s.takers))], n)
	}
}
