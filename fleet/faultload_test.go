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
	"github.com/weir-go/weir/limiter"
)

// What the load is made of: for each policy some callers, who take one permit after the other of one key.
const (
	faultRate    = 200 // permits a second
	faultBurst   = 100
	faultShare   = 0.5
	faultTimeout = 100 * time.Millisecond
	faultCallers = 4                    // a policy
	faultPause   = 2 * time.Millisecond // of a caller between two requests
	faultTotal   = 100_000              // permits of the limiter that does not limit, but counts
)

// tally is what became of the requests of one limiter.
type tally struct {
	limiter *fleet.Limiter

	mu      sync.Mutex
	granted int           // by Redis
	away    int           // admitted by the policy
	refused int           // by either
	lost    int           // no answer, and it may have been taken
	errors  int           // no decision
	worst   time.Duration // of one request
	back    time.Time     // when Redis decided for the first time after the mark
	mark    time.Time
}

func (y *tally) take(ctx context.Context) error {
	start := time.Now()
	r, err := y.limiter.Take(ctx, "k", 1)
	y.mu.Lock()
	defer y.mu.Unlock()
	y.worst = max(y.worst, time.Since(start))
	var e *fleet.StoreError
	switch {
	case err == nil && r.OK && r.From == fleet.FromOutage:
		y.away++
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

// load is what comes from the users of all policies, and what became of it.
type load struct {
	link    *fleet.Link
	tallies map[string]*tally
	opened  atomic.Int64 // times that the breaker before Redis has opened, having been closed
	began   time.Time
	took    time.Duration
}

// counting is the limiter that does not limit: what Redis says was taken of it is to be what was granted.
const counting = "counting"

// newLoad connects through the client of a faulty Redis.
func newLoad(t *testing.T, client redis.UniversalClient, timeout time.Duration) *load {
	t.Helper()
	l := &load{tallies: map[string]*tally{}}
	l.link = connectTo(t, client, fleet.LinkConfig{
		Timeout: timeout,
		Breaker: breaker.Config{Cooldown: 200 * time.Millisecond, CooldownJitter: 0.2, OnChange: func(c breaker.Change) {
			if c.From == breaker.Closed && c.To == breaker.Open {
				l.opened.Add(1)
			}
		}},
	})
	for _, away := range []fleet.OnOutage{fleet.FailOpen, fleet.FailClosed, fleet.FailLocal, fleet.FailError} {
		c := fleet.Config{OnOutage: away, MaxDenied: fleet.Off}
		if away == fleet.FailLocal {
			c.Share = faultShare
		}
		bucket := fleet.TokenBucket{Rate: limiter.PerSecond(faultRate), Burst: faultBurst}
		l.tallies[string(away)] = &tally{limiter: newLimiter(l.link, "fault-"+string(away), bucket, c)}
	}
	bucket := fleet.TokenBucket{Rate: limiter.PerHour(1), Burst: faultTotal}
	l.tallies[counting] = &tally{limiter: newLimiter(l.link, "fault-counting", bucket, fleet.Config{OnOutage: fleet.FailError})}
	return l
}

// run has requests come while the fault happens, until Redis decides about all again, and a while longer.
func (l *load) run(t *testing.T, fault func()) {
	t.Helper()
	l.began = time.Now()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var g sync.WaitGroup
	for name, y := range l.tallies {
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
	for _, y := range l.tallies {
		y.mu.Lock()
		y.mark, y.back = time.Now(), time.Time{}
		y.mu.Unlock()
	}
	require.Eventually(t, l.decidedByRedis, 20*time.Second, 10*time.Millisecond, "Redis has not decided since the fault was over")
	<-time.After(300 * time.Millisecond)
	stop()
	g.Wait()
	l.took = time.Since(l.began)
	l.settle(t)
}

// decidedByRedis reports whether Redis has decided about all since the fault was over.
func (l *load) decidedByRedis() bool {
	for _, y := range l.tallies {
		y.mu.Lock()
		back := y.back
		y.mu.Unlock()
		if back.IsZero() {
			return false
		}
	}
	return true
}

// settle has the breaker closed for good, wherever a busy machine has left it.
func (l *load) settle(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := l.tallies[counting].limiter.Take(t.Context(), "k", 0)
		return err == nil && l.link.Breaker().State() == breaker.Closed
	}, 20*time.Second, 10*time.Millisecond, "the breaker has not closed")
}

// lawful is what may be admitted at most where Redis forgets nothing.
func (l *load) lawful() int { return faultBurst + int(math.Ceil(faultRate*l.took.Seconds())) }

// over is how much more was admitted by Redis than is lawful, with what every loss of its memory allows.
func (l *load) over() int {
	worst := 0
	for name, y := range l.tallies {
		if name != counting {
			worst = max(worst, y.granted-l.lawful())
		}
	}
	return worst
}

// worst is the longest that any request took.
func (l *load) worst() (d time.Duration) {
	for _, y := range l.tallies {
		d = max(d, y.worst)
	}
	return d
}

// recovered is how long after the fault Redis decided about all again.
func (l *load) recovered() (d time.Duration) {
	for _, y := range l.tallies {
		d = max(d, y.back.Sub(y.mark))
	}
	return d
}

// taken is what Redis says was taken of the limiter that counts.
func (l *load) taken(t *testing.T) int {
	t.Helper()
	r, err := l.tallies[counting].limiter.Take(t.Context(), "k", 0)
	require.NoError(t, err)
	return r.Limit - r.Remaining
}

// row is a line of the table of what was measured.
func (l *load) row(t *testing.T, taken int) string {
	t.Helper()
	c := l.tallies[counting]
	var policies []string
	for _, name := range []string{"fail-open", "fail-closed", "fail-local", "fail-error"} {
		y := l.tallies[name]
		policies = append(policies, fmt.Sprintf("%s %d+%d", name, y.granted, y.away))
	}
	return fmt.Sprintf("%-34s | lawful %d, by Redis + by policy: %s | counted %d, granted %d, unanswered %d | worst call %s | back after %s | opened %d×",
		strings.TrimPrefix(t.Name(), "TestFaults/"), l.lawful(), strings.Join(policies, ", "), taken, c.granted, c.lost,
		l.worst().Round(time.Millisecond), l.recovered().Round(time.Millisecond), l.opened.Load())
}
