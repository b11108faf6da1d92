package pipeline_test

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-go/weir/fleet/internal/pipeline"
	"github.com/weir-go/weir/fleet/internal/redistest"
)

// countingDecision adds to each key, and returns the sum and the number of keys.
var countingDecision = newDecision(`local answer = {}
for i, key in ipairs(KEYS) do
	answer[2 * i - 1], answer[2 * i] = redis.call('INCRBY', key, ARGV[i]), #KEYS
end
return answer`, 2)

func newDecision(text string, answers int) *pipeline.Decision {
	sum := sha1.Sum([]byte(text))
	return &pipeline.Decision{Text: text, SHA: hex.EncodeToString(sum[:]), Answers: answers}
}

// decideKeys decides about keys, all but the first in one batch, and returns the replies by key.
func decideKeys(t *testing.T, client redis.UniversalClient, d *pipeline.Decision, keys ...string) map[string][]int64 {
	t.Helper()
	q := &blockedQueue{open: make(chan struct{})}
	q.hook = &writeCounter{do: func() { <-q.open }}
	client.AddHook(q.hook)
	q.writer = pipeline.New(client, pipeline.Config{Timeout: 10 * time.Second, Lanes: 1})
	q.join(t.Context(), 1, func(int64, error) {})
	var mu sync.Mutex
	answers := map[string][]int64{}
	for i, key := range keys {
		before := pipeline.Waiting(q.writer)
		q.group.Go(func() {
			answer, _, err := q.writer.Decide(t.Context(), time.Now().Add(longLimit), d, key, i+1)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			answers[key] = answer
		})
		for pipeline.Waiting(q.writer) == before {
			<-time.After(time.Millisecond)
		}
	}
	q.finish()
	return answers
}

func TestQueuedDecisionsBecomeOneCommand(t *testing.T) {
	client := dialServer(t, redistest.Start(t).Addr())
	require.NoError(t, client.ScriptLoad(t.Context(), countingDecision.Text).Err())
	require.Equal(t, map[string][]int64{"a": {1, 3}, "b": {2, 3}, "c": {3, 3}}, decideKeys(t, client, countingDecision, "a", "b", "c"))
}

func TestDecisionsOfAScriptThatTheServerHasForgotten(t *testing.T) {
	client := dialServer(t, redistest.Start(t).Addr())
	require.Equal(t, map[string][]int64{"a": {1, 1}, "b": {2, 1}, "c": {3, 1}}, decideKeys(t, client, countingDecision, "a", "b", "c"))
}

func TestCancelledDecisionDoesNotAffectItsCommand(t *testing.T) {
	client := dialServer(t, redistest.Start(t).Addr())
	require.NoError(t, client.ScriptLoad(t.Context(), countingDecision.Text).Err())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	q := &blockedQueue{open: make(chan struct{})}
	q.hook = &writeCounter{do: func() { <-q.open }, decides: cancel}
	client.AddHook(q.hook)
	q.writer = pipeline.New(client, pipeline.Config{Timeout: 10 * time.Second, Lanes: 1})
	q.join(t.Context(), 1, func(int64, error) {})
	for i, ctx := range []context.Context{ctx, t.Context(), t.Context()} {
		q.group.Go(func() {
			if _, _, err := q.writer.Decide(ctx, time.Now().Add(longLimit), countingDecision, "k", 1); err != nil && i > 0 {
				t.Error(err)
			}
		})
		for pipeline.Waiting(q.writer) == i {
			<-time.After(time.Millisecond)
		}
	}
	q.finish()
	total, err := addTo(t.Context(), q.writer, "k", 0)
	require.NoError(t, err)
	require.EqualValues(t, 4, total)
}

func TestAScriptThatAnswersTooLittleIsAnError(t *testing.T) {
	client := dialServer(t, redistest.Start(t).Addr())
	short := newDecision("return {1}", 2)
	_, _, err := pipeline.New(client, pipeline.Config{Timeout: time.Second}).Decide(t.Context(), time.Now().Add(longLimit), short, "k")
	require.ErrorContains(t, err, "1 numbers for 1 keys")
}

func TestManyDecideAtOnce(t *testing.T) {
	for _, test := range []struct {
		name   string
		client redis.UniversalClient
		joint  bool
	}{
		{"stand-alone", dialServer(t, redistest.Start(t).Addr()), true},
		{"in a Cluster each by itself", dialCluster(t, cluster().Addrs()), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := pipeline.New(test.client, pipeline.Config{Timeout: 10 * time.Second, Lanes: 1})
			var g sync.WaitGroup
			var most atomic.Int64
			for range 32 {
				g.Go(func() {
					key := freshKey("{k}")
					for round := range int64(50) {
						answer, _, err := w.Decide(t.Context(), time.Now().Add(longLimit), countingDecision, key, 1)
						if err != nil || answer[0] != round+1 {
							t.Errorf("key %s, round %d: %v, %v", key, round, answer, err)
							return
						}
						most.Store(max(most.Load(), answer[1]))
					}
				})
			}
			g.Wait()
			require.Equal(t, test.joint, most.Load() > 1, "%d at once", most.Load())
		})
	}
}
