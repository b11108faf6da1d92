package fleet_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/redisson"
	"github.com/weir-go/weir/limiter"
)

type redissonConfig struct {
	Name     string `json:"name"`
	Type     int    `json:"type"` // 0 OVERALL, 1 PER_CLIENT
	Rate     int    `json:"rate"`
	Interval int64  `json:"interval_ms"`
}

type redissonStep struct {
	Op      string `json:"op"`
	Client  string `json:"client"`
	Now     int64  `json:"now_ms"`
	Permits int    `json:"permits"`

	Type     int   `json:"type"`
	Rate     int   `json:"rate"`
	Interval int64 `json:"interval_ms"`

	Out struct {
		Reply   *int64 `json:"reply"`
		Granted bool   `json:"granted"`
		Error   string `json:"error"`
	} `json:"out"`
	State struct {
		Log []logEntry `json:"log"`
	} `json:"state"`
	Available json.RawMessage `json:"avail_peek"` // a number, or the text of an error
	OverGrant bool            `json:"over_grant"`
}

func (s redissonStep) at() time.Time { return time.UnixMilli(s.Now) }

// logEntry is a request in a sliding log: its time in ms and its tokens.
type logEntry struct{ at, n int64 }

func (e *logEntry) UnmarshalJSON(raw []byte) error {
	return json.Unmarshal(raw, &[]any{&e.at, &e.n})
}

// rateLimiter replays one RRateLimiter with a SlidingLog per client.
type rateLimiter struct {
	*testing.T
	direct  *redis.Client
	key     string
	clients map[string]*fleet.Limiter
}

func newRedisson(t *testing.T, l *fleet.Link, direct *redis.Client, c redissonConfig) *rateLimiter {
	r := &rateLimiter{T: t, direct: direct, key: newKey(), clients: map[string]*fleet.Limiter{}}
	for _, client := range []string{"c0", "c1"} {
		log := fleet.SlidingLog{Limit: c.Rate, Window: time.Duration(c.Interval) * time.Millisecond}
		limit := fleet.Limit(log)
		if c.Type == 1 {
			limit = redisson.PerClient(log, client)
		}
		r.clients[client] = newLimiter(l, "redisson", limit, fleet.Config{OnOutage: fleet.FailError})
	}
	return r
}

// take makes the request of a client.
func (r *rateLimiter) take(s redissonStep, n int) limiter.Result {
	result, err := r.clients[s.Client].TakeAt(r.Context(), s.at(), r.key, n)
	require.NoError(r, err)
	return result.Result
}

// log returns the entries of a client's log in Redis that count.
func (r *rateLimiter) log(s redissonStep, span int64) (log []logEntry) {
	members, err := r.direct.ZRangeWithScores(r.Context(), r.clients[s.Client].StateKeys(r.key)[0], 1, -1).Result()
	require.NoError(r, err)
	for _, m := range members {
		e := logEntry{at: int64(m.Score) / 1000}
		_, weight, _ := strings.Cut(m.Member.(string), ":")
		require.NoError(r, json.Unmarshal([]byte(weight), &e.n))
		log = append(log, e)
	}
	return liveEntries(log, s.Now, span)
}

// liveEntries returns the entries of a log that count, with those of the same time sorted by
// weight.
func liveEntries(log []logEntry, now, span int64) (rest []logEntry) {
	for _, e := range log {
		if e.at > now-span {
			rest = append(rest, e)
		}
	}
	slices.SortFunc(rest, func(a, b logEntry) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.n, b.n)) })
	return rest
}

// timeUntilTokens returns how long it takes until n tokens can be taken.
func timeUntilTokens(log []logEntry, limit, n int, now, span int64) time.Duration {
	beyond := int64(n - limit)
	for _, e := range log {
		beyond += e.n
	}
	for _, e := range log {
		if beyond -= e.n; beyond <= 0 {
			return time.Duration(e.at+span-now) * time.Millisecond
		}
	}
	return limiter.Never
}

// If Redisson's limiter is used as intended, SlidingLog grants the same requests, with the same log
// and the same available tokens at each step. After a refusal, Redisson reports when the oldest
// entry expires, plus 3 ms. SlidingLog reports when there will be enough tokens.
func TestSlidingLogGrantsWhatRedissonGranted(t *testing.T) {
	l, direct := connect(t), newClient(t, sharedServer())
	sequences, steps := 0, 0
	for _, seq := range readTraces[redissonConfig, redissonStep](t, "redisson") {
		c := seq.Config
		if !strings.HasPrefix(c.Name, "random-overall") && !strings.HasPrefix(c.Name, "random-per-client") {
			continue
		}
		sequences++
		r := newRedisson(t, l, direct, c)
		for i, s := range seq.Steps {
			steps++
			if s.Op == "tryAcquire" {
				result := r.take(s, s.Permits)
				require.Equal(t, s.Out.Granted, result.OK, "%s, step %d: %+v", c.Name, i, s)
				log := liveEntries(s.State.Log, s.Now, c.Interval)
				switch {
				case s.Out.Error != "":
					require.Equal(t, limiter.Never, result.RetryAfter, s.Out.Error)
				case !s.Out.Granted:
					require.Equal(t, timeUntilTokens(log, c.Rate, s.Permits, s.Now, c.Interval), result.RetryAfter, "%s, step %d: %+v", c.Name, i, s)
					require.Equal(t, log[0].at+c.Interval-s.Now+3, *s.Out.Reply)
				}
				require.Equal(t, log, r.log(s, c.Interval), "%s, step %d: %+v", c.Name, i, s)
			}
			require.JSONEq(t, string(s.Available), toJSON(t, r.take(s, 0).Remaining), "%s, step %d: %+v", c.Name, i, s)
		}
	}
	require.Equal(t, []int{137, 5480}, []int{sequences, steps}, "sequences and steps")
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return string(raw)
}

// model is a log that keeps everything, to check SlidingLog.
type model struct {
	limit int
	span  int64
	log   []logEntry // what was taken and not given back
}

func (m *model) used(now int64) (sum int64) {
	for _, e := range m.log {
		if e.at > now-m.span {
			sum += e.n
		}
	}
	return sum
}

// refund gives back the oldest tokens that count.
func (m *model) refund(now, n int64) {
	for i := range m.log {
		if e := &m.log[i]; e.at > now-m.span {
			back := min(n, e.n)
			e.n, n = e.n-back, n-back
		}
	}
}

// Redisson's limiter exceeds its rate after a release or a change of the rate, or if the clocks of
// clients differ. SlidingLog never does. It also refuses no request that fits, with one exception:
// after its window was made longer, the log does not cover the whole window for a while.
func TestSlidingLogNeverGrantsTooMuchWhereRedissonDoes(t *testing.T) {
	l, direct := connect(t), newClient(t, sharedServer())
	theirs, blind, granted := 0, 0, 0
	for _, seq := range readTraces[redissonConfig, redissonStep](t, "redisson") {
		c := seq.Config
		if !strings.HasPrefix(c.Name, "random-release") && !strings.HasPrefix(c.Name, "random-rate-changes") && !strings.HasPrefix(c.Name, "random-skewed") {
			continue
		}
		r := newRedisson(t, l, direct, c)
		m := &model{limit: c.Rate, span: c.Interval}
		latest := int64(0)
		for i, s := range seq.Steps {
			if s.OverGrant {
				theirs++
			}
			switch s.Op {
			case "tryAcquire":
				// of what was granted: a clock that is behind takes nothing out of the window
				now := max(s.Now, latest)
				result, used := r.take(s, s.Permits), m.used(now)
				fits := used+int64(s.Permits) <= int64(m.limit)
				require.False(t, result.OK && !fits, "%s, step %d: %d are used of %d: %+v", c.Name, i, used, m.limit, s)
				switch {
				case result.OK:
					granted++
					latest = now
					m.log = append(m.log, logEntry{now, int64(s.Permits)})
				case fits:
					blind++
					require.Greater(t, m.span, shortestWindow(seq.Steps[:i], c.Interval), "%s, step %d is refused: %d are used of %d: %+v", c.Name, i, used, m.limit, s)
				}
			case "release":
				require.NoError(t, r.clients[s.Client].GiveBackAt(t.Context(), s.at(), r.key, s.Permits))
				m.refund(max(s.Now, latest), int64(s.Permits))
			case "setRate", "setRateArgs", "updateRateArgs":
				require.NoError(t, redisson.SetRate(t.Context(), r.clients[s.Client], r.key, s.Rate, time.Duration(s.Interval)*time.Millisecond))
				m.limit, m.span = s.Rate, s.Interval
			}
		}
	}
	require.Equal(t, []int{90, 13, 2010}, []int{theirs, blind, granted}, "Redisson's grants beyond the rate, refusals because of a short log, grants of SlidingLog")
}

// shortestWindow returns the shortest window so far.
func shortestWindow(steps []redissonStep, span int64) int64 {
	for _, s := range steps {
		if s.Interval > 0 {
			span = min(span, s.Interval)
		}
	}
	return span
}
