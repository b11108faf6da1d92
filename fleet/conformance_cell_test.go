package fleet_test

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/fleet/rediscell"
)

type cellConfig struct {
	Name string `json:"name"`
}

type cellStep struct {
	At       int64 `json:"t_ns"`
	MaxBurst int   `json:"max_burst"`
	Count    int   `json:"count"`
	Period   int64 `json:"period_s"`
	Quantity int   `json:"quantity"`

	Reply *[5]int64 `json:"reply"`
	Error string    `json:"error"`
	Tat   *int64    `json:"tat_ns"`
	TTL   int64     `json:"pttl_ms"`
}

func (s cellStep) limit() fleet.Limit {
	return rediscell.Limit(s.MaxBurst, s.Count, time.Duration(s.Period)*time.Second)
}

// Intended differences from the module of redis-cell.
const (
	zeroSeconds = "the module refuses with a retry after 0 seconds; rediscell says 1"
	nonsense    = "rediscell rejects the limit, or a sum overflows in the module, which then returns errors or refuses forever"
	peekStored  = "the module stores the time of a request for 0"
	earlyDeath  = "the module forgets up to a millisecond, because its keys live whole milliseconds"
	afterIdling = "in the last millisecond of an expired key, the module refuses with more remaining than the limit"
)

// The limit of package rediscell returns and stores the same as the module of redis-cell in a
// recording, in all sequences without negative quantities. If the two have stored different values,
// the test continues with the value of the module.
func TestCellAnswersAsTheRecordedModule(t *testing.T) {
	l := connect(t)
	seen := map[string]int{}
	steps := 0
	for _, seq := range readTraces[cellConfig, cellStep](t, "redis-cell-module") {
		if slices.ContainsFunc(seq.Steps, func(s cellStep) bool { return s.Quantity < 0 }) {
			continue
		}
		r := cellReplay{T: t, link: l, direct: newClient(t, sharedServer()), key: newKey(), seen: seen}
		for _, s := range seq.Steps {
			r.step(s)
			steps++
		}
	}
	require.Equal(t, map[string]int{zeroSeconds: 178, nonsense: 27, peekStored: 67, earlyDeath: 17, afterIdling: 6}, seen, "intended differences, of %d steps", steps)
}

// cellReplay is one key, used as in a recording.
type cellReplay struct {
	*testing.T
	link   *fleet.Link
	direct *redis.Client
	key    string
	seen   map[string]int
	tat    *int64 // what the module stored; the key lives until the end of millisecond number dies
	dies   int64
}

func (r *cellReplay) step(s cellStep) {
	if r.tat != nil && s.At/1e6 > r.dies {
		if *r.tat > s.At {
			r.seen[earlyDeath]++
		}
		r.tat = nil
		r.store()
	}
	if s.Error != "" || fleet.Check(s.limit()) != nil {
		r.seen[nonsense]++
	} else {
		r.compare(s)
	}
	r.tat, r.dies = s.Tat, s.At/1e6+s.TTL
	r.store()
}

func (r *cellReplay) compare(s cellStep) {
	reply, err := r.link.CellAt(r.Context(), time.Unix(0, s.At), s.limit(), r.key, s.Quantity)
	require.NoError(r, err)
	module := *s.Reply
	if module[0] == 1 && module[3] == 0 {
		r.seen[zeroSeconds]++
		module[3] = 1
	}
	if module[0] == 1 && module[2] > module[1] && *r.tat < s.At {
		r.seen[afterIdling]++
		module[2] = module[1]
	}
	require.Equal(r, module, numbersOf(rediscell.ReplyOf(reply)), "%+v", s)
	switch held := r.held(); {
	case s.Quantity == 0:
		if r.tat == nil || s.Tat != nil && *s.Tat != *r.tat {
			r.seen[peekStored]++
		}
	case s.Tat == nil: // it expired in that millisecond
	default:
		require.Equal(r, strconv.FormatInt(*s.Tat, 10), held, "%+v", s)
	}
}

// held returns the value in Redis.
func (r *cellReplay) held() string {
	text, err := r.direct.Get(r.Context(), r.link.RedisKey(r.key)).Result()
	if !errors.Is(err, redis.Nil) {
		require.NoError(r, err)
	}
	return text
}

// store writes the value that the module stored.
func (r *cellReplay) store() {
	if r.tat == nil {
		require.NoError(r, r.direct.Del(r.Context(), r.link.RedisKey(r.key)).Err())
		return
	}
	require.NoError(r, r.direct.Set(r.Context(), r.link.RedisKey(r.key), *r.tat, time.Minute).Err())
}
