package fleet

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
)

// SlidingLog admits for each key Limit permits in any window of length Span, and exactly that, by
// the server's clock: it remembers when each was taken, and each comes back when it is Span old. It
// is what Redisson's RRateLimiter does; its setRate is [Limiter.SetRate], and its availablePermits
// is the Remaining of [Limiter.Peek].
//
// It costs up to 130 bytes in Redis for each request in the window. RetryAfter is minimal, to the
// microsecond.
type SlidingLog struct {
	Limit int           // the most permits in any window, from 1 to 2^31-1. Must be given.
	Span  time.Duration // the length of a window, whole µs from 1 ms to 10 years. Must be given.
	// PerClient gives each client a limit of its own: Redisson's PER_CLIENT. Default: the limit is
	// for all together.
	PerClient bool
	// Client is who this client is, where PerClient is set: a name without braces. Default: one
	// made up at random.
	Client string
	// KeepRate is how long a rate that SetRate has set is kept after the key was last used, from 1
	// s to 10 years, and at least for its span. Default: a day.
	KeepRate time.Duration
}

const defaultKeepRate = 24 * time.Hour

func (g SlidingLog) compile() (term, error) {
	faults := []error{validateWindow(g.Limit, g.Span)}
	if g.Client != "" && !g.PerClient || strings.ContainsAny(g.Client, "{}") {
		faults = append(faults, fmt.Errorf("fleet: Client is %q, must be empty unless PerClient is set, and have no braces", g.Client))
	}
	if g.KeepRate != 0 && (g.KeepRate < time.Second || g.KeepRate > maxSpan) {
		faults = append(faults, fmt.Errorf("fleet: KeepRate is %s, must lie between 1s and %s (or be 0 for the default)", g.KeepRate, maxSpan))
	}
	if g.KeepRate == 0 {
		g.KeepRate = defaultKeepRate
	}
	g.KeepRate = max(g.KeepRate, g.Span)
	if g.PerClient && g.Client == "" {
		g.Client = rand.Text()
	}
	return term{rule: logRule{g}}, errors.Join(faults...)
}

type logRule struct{ SlidingLog }

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
