package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/internal/testenv"
	"github.com/weir-go/weir/limiter"
)

// These constants describe the load: for each policy, some callers take tokens of one key, one
// token per request.
const (
	faultRate    = 200 // tokens a second
	faultBurst   = 100
	faultShare   = 0.5
	faultTimeout = 100 * time.Millisecond
	faultCallers = 4                    // per policy
	faultPause   = 5 * time.Millisecond // of a caller between two requests
	faultTotal   = 100_000              // burst of countingLimiter, which is never used up
)

// results counts the outcomes of the requests of one limiter.
type results struct {
	limiter *fleet.Limiter

	mu       sync.Mutex
	granted  int           // by Redis
	byPolicy int           // allowed by OnOutage, without Redis
	refused  int           // by Redis or by OnOutage
	lost     int           // no answer, and the token may have been taken
	errors   int           // no decision
	worst    time.Duration // of one request
	back     time.Time     // when Redis decided for the first time after the mark
	mark     time.Time
}

func (y *results) take(ctx context.Context) error {
	start := testenv.Running()
	r, err := y.limiter.Take(ctx, "k", 1)
	y.mu.Lock()
	defer y.mu.Unlock()
	y.worst = max(y.worst, testenv.Running()-start)
	var e *fleet.StoreError
	switch {
	case err == nil && r.OK && r.From == fleet.FromOutage:
		y.byPolicy++
	case err == nil && r.OK:
		y.granted++
	case err == nil:
		y.refused++
	case errors.As(err, &e) && errors.Is(err, fleet.ErrUnavailable):
		y.errors++
		if e.Fault == fleet.FaultTimeout || e.Fault == fleet.FaultConnection {
			y.lost++
		}
	default:
		return err
	}
	if err == nil && r.From == fleet.FromServer && y.back.IsZero() && !y.mark.IsZero() {
		y.back = time.Now()
	}
	return nil
}

// faultLoad holds the requests of all policies and their outcomes.
type faultLoad struct {
	link    *fleet.Link
	results map[string]*results
	opened  atomic.Int64 // how often the breaker of the link went from closed to open
	began   time.Time
	took    time.Duration
}

// countingLimiter is a limiter with a limit that is never reached. Redis must report exactly the
// granted tokens as taken.
const countingLimiter = "counting"

// newFaultLoad connects to a faulty Redis.
func newFaultLoad(t *testing.T, client redis.UniversalClient, timeout time.Duration) *faultLoad {
	t.Helper()
	l := &faultLoad{results: map[string]*results{}}
	l.link = connectTo(t, client, fleet.LinkConfig{
		Timeout: timeout,
		Breaker: breaker.Config{Cooldown: 200 * time.Millisecond, CooldownJitter: 0.2, OnChange: func(c breaker.Change) {
			if c.From == breaker.Closed && c.To == breaker.Open {
				l.opened.Add(1)
			}
		}},
	})
	for _, policy := range []fleet.OnOutage{fleet.FailOpen, fleet.FailClosed, fleet.FailLocal, fleet.FailError} {
		c := fleet.Config{OnOutage: policy, MaxDenied: limiter.Off}
		if policy == fleet.FailLocal {
			c.Share = faultShare
		}
		bucket := fleet.TokenBucket{Rate: limiter.PerSecond(faultRate), Burst: faultBurst}
		l.results[string(policy)] = &results{limiter: newLimiter(l.link, "fault-"+string(policy), bucket, c)}
	}
	bucket := fleet.TokenBucket{Rate: limiter.Per(1, time.Hour), Burst: faultTotal}
	l.results[countingLimiter] = &results{limiter: newLimiter(l.link, "fault-counting", bucket, fleet.Config{OnOutage: fleet.FailError})}
	return l
}

// run makes requests during the fault, and until Redis has decided for all limiters again.
func (l *faultLoad) run(t *testing.T, fault func()) {
	t.Helper()
	l.began = time.Now()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var g sync.WaitGroup
	for name, y := range l.results {
		for range faultCallers {
			g.Go(func() {
				for ctx.Err() == nil {
					if err := y.take(context.WithoutCancel(ctx)); err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
					<-time.After(faultPause)
				}
			})
		}
	}
	fault()
	for _, y := range l.results {
		y.mu.Lock()
		y.mark, y.back = time.Now(), time.Time{}
		y.mu.Unlock()
	}
	require.Eventually(t, l.decidedByRedis, time.Minute, 10*time.Millisecond, "Redis has not decided since the end of the fault")
	<-time.After(300 * time.Millisecond)
	stop()
	g.Wait()
	l.took = time.Since(l.began)
	l.awaitClosed(t)
}

// decidedByRedis reports whether Redis has decided for all limiters since the end of the fault.
func (l *faultLoad) decidedByRedis() bool {
	for _, y := range l.results {
		y.mu.Lock()
		back := y.back
		y.mu.Unlock()
		if back.IsZero() {
			return false
		}
	}
	return true
}

// awaitClosed waits until the breaker is closed.
func (l *faultLoad) awaitClosed(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := l.results[countingLimiter].limiter.Take(t.Context(), "k", 0)
		return err == nil && l.link.Breaker().State() == breaker.Closed
	}, time.Minute, 10*time.Millisecond, "the breaker has not closed")
}

// allowance returns the maximum number of tokens that may be granted if Redis loses nothing.
func (l *faultLoad) allowance() int { return faultBurst + int(math.Ceil(faultRate*l.took.Seconds())) }

// overAllowance returns by how much Redis exceeded the allowance.
func (l *faultLoad) overAllowance() int {
	worst := 0
	for name, y := range l.results {
		if name != countingLimiter {
			worst = max(worst, y.granted-l.allowance())
		}
	}
	return worst
}

// worst returns the longest duration of a request.
func (l *faultLoad) worst() (d time.Duration) {
	for _, y := range l.results {
		d = max(d, y.worst)
	}
	return d
}

// recoveryTime returns how long after the fault Redis decided for all limiters again.
func (l *faultLoad) recoveryTime() (d time.Duration) {
	for _, y := range l.results {
		d = max(d, y.back.Sub(y.mark))
	}
	return d
}

// taken returns what Redis reports as taken from the counting limiter. A busy machine may miss the
// Timeout of the link even when the fault is over.
func (l *faultLoad) taken(t *testing.T) int {
	t.Helper()
	var r fleet.Result
	require.Eventually(t, func() (answered bool) {
		var err error
		r, err = l.results[countingLimiter].limiter.Take(t.Context(), "k", 0)
		return err == nil && r.From == fleet.FromServer
	}, 30*time.Second, 10*ms)
	return r.Limit - r.Remaining
}

// tableRow returns a line of the table of measurements.
func (l *faultLoad) tableRow(t *testing.T, taken int) string {
	t.Helper()
	c := l.results[countingLimiter]
	var policies []string
	for _, name := range []string{"fail-open", "fail-closed", "fail-local", "fail-error"} {
		y := l.results[name]
		policies = append(policies, fmt.Sprintf("%s %d+%d", name, y.granted, y.byPolicy))
	}
	return fmt.Sprintf("%-34s | lawful %d, by Redis + by policy: %s | counted %d, granted %d, unanswered %d | worst call %s | back after %s | opened %d×",
		strings.TrimPrefix(t.Name(), "TestFaults/"), l.allowance(), strings.Join(policies, ", "), taken, c.granted, c.lost,
		l.worst().Round(time.Millisecond), l.recoveryTime().Round(time.Millisecond), l.opened.Load())
}
