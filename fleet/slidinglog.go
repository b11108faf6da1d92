package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Log is the limit of a [SlidingLog].
type Log struct {
	Limit int           // the most permits in any window, from 1 to 2^31-1. Must be given.
	Span  time.Duration // the length of a window, whole µs from 1 ms to 10 years. Must be given.
	// PerClient gives each client a limit of its own: Redisson's PER_CLIENT. Default: the limit is for all together.
	PerClient bool
	// Client is who this client is, where PerClient is set: a name without braces. Default: one made up at random.
	Client string
	// KeepRate is how long a rate that SetRate has set is kept after the key was last used, from 1 s to 10 years, and at least for its
	// span. Default: a day.
	KeepRate time.Duration
}

const defaultKeepRate = 24 * time.Hour

// Validate returns nil for a limit that makes sense, and otherwise an error that names all faults.
func (g Log) Validate() error {
	faults := []error{validateWindow(g.Limit, g.Span)}
	if g.Client != "" && !g.PerClient || strings.ContainsAny(g.Client, "{}") {
		faults = append(faults, fmt.Errorf("fleet: Client is %q, must be empty unless PerClient is set, and have no braces", g.Client))
	}
	if g.KeepRate != 0 && (g.KeepRate < time.Second || g.KeepRate > maxSpan) {
		faults = append(faults, fmt.Errorf("fleet: KeepRate is %s, must lie between 1s and %s (or be 0 for the default)", g.KeepRate, maxSpan))
	}
	return errors.Join(faults...)
}

// SlidingLog admits for each key Limit permits in any window of length Span, and exactly that, by the server's clock: it
// remembers when each was taken, and each comes back when it is Span old. It is what Redisson's RRateLimiter does.
//
// It costs some 100 bytes in Redis for each request in the window. Its RetryAfter is minimal, to the microsecond. All methods are
// safe for concurrent use, and block: see Take.
type SlidingLog struct {
	*core
	log logRule
}

// NewSlidingLog makes a limiter. It panics as [NewTokenBucket] does.
func NewSlidingLog(l *Link, name string, g Log, c Config) *SlidingLog {
	s := newScripted(l, name, c, g)
	return &SlidingLog{core: s.core, log: s.rules[0].(logRule)}
}

// SetRate sets the limit and the span of a key, for all nodes and whatever their configs say, until the key has not been used for
// KeepRate. What has been taken still counts. Where the span becomes longer and permits have left the window already that lie in
// the longer one, nothing is admitted until they have left that too; but what a key that was idle for the old span had taken
// before is not known any more.
func (s *SlidingLog) SetRate(ctx context.Context, key string, limit int, span time.Duration) error {
	_, err := s.setRate(ctx, key, Fixed{limit, span}, 0)
	return err
}

// TrySetRate is SetRate that changes nothing where a rate is set already. It reports whether it has set it.
func (s *SlidingLog) TrySetRate(ctx context.Context, key string, limit int, span time.Duration) (bool, error) {
	return s.setRate(ctx, key, Fixed{limit, span}, 1)
}

// Available is how many permits could be taken now. It is Peek's Remaining.
func (s *SlidingLog) Available(ctx context.Context, key string) (int, error) {
	r, err := s.Peek(ctx, key)
	return r.Remaining, err
}

func (s *SlidingLog) setRate(ctx context.Context, key string, rate Fixed, onlyNew int) (bool, error) {
	if err := rate.Validate(); err != nil {
		return false, err
	}
	keys := s.log.keys(s.base(key))
	keep := max(s.log.KeepRate, rate.Span).Milliseconds()
	reply, err := s.link.eval(ctx, setRateScript, []string{keys[1], keys[0]}, []any{rate.Limit, rate.Span.Microseconds(), keep, onlyNew})
	s.book.fault(err)
	s.changed(key)
	return err == nil && reply[0] == 1, err
}

func (g Log) rule() rule {
	if g.KeepRate == 0 {
		g.KeepRate = defaultKeepRate
	}
	g.KeepRate = max(g.KeepRate, g.Span)
	if g.PerClient && g.Client == "" {
		g.Client = rand.Text()
	}
	return logRule{g}
}

type logRule struct{ Log }

func (r logRule) kind() string                   { return "slidinglog" }
func (r logRule) most() int                      { return r.Limit }
func (r logRule) pace() (float64, time.Duration) { return float64(r.Limit), r.Span }

func (r logRule) keys(base string) []string {
	log := base
	if r.PerClient {
		log += ":client:" + r.Client
	}
	return []string{log, base + ":rate"}
}

func (r logRule) numbers() []any {
	return []any{r.Limit, r.Span.Microseconds(), r.KeepRate.Milliseconds()}
}
