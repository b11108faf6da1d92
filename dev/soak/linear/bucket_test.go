package linear_test

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/weir-go/weir/limiter"
)

// takeEvent is a request for n tokens, or a refund if n is below 0.
type takeEvent struct {
	key string
	n   int
	at  time.Duration
}

const (
	token      = time.Millisecond
	burst      = 5
	fullBucket = burst * token
)

// bucketModel is GCRA. Its state is the time at which the bucket is full again.
func bucketModel() porcupine.Model {
	return porcupine.Model{
		Partition: splitByKey,
		Init:      func() any { return time.Duration(-1 << 60) },
		Step: func(state, input, output any) (bool, any) {
			full, in := state.(time.Duration), input.(takeEvent)
			start := max(full, in.at)
			next := start + time.Duration(in.n)*token
			r := limiter.Result{OK: next <= in.at+fullBucket, Limit: burst}
			if r.OK {
				start = next
			} else {
				r.RetryAfter = next - fullBucket - in.at
			}
			if in.n > 0 && r.OK {
				full = next
			}
			r.Remaining, r.ResetAfter = max(int((in.at+fullBucket-start)/token), 0), start-in.at
			return output.(limiter.Result) == r, full
		},
	}
}

func splitByKey(history []porcupine.Operation) (parts [][]porcupine.Operation) {
	index := map[string]int{}
	for _, op := range history {
		key := op.Input.(takeEvent).key
		i, known := index[key]
		if !known {
			i, index[key] = len(parts), len(parts)
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], op)
	}
	return parts
}

// requestStep returns a client's next step: a request at a time that advances by about the pace.
func requestStep(t0 time.Time, pace time.Duration, of func(c *client) (string, limiter.TimedLimiter)) func(*client) {
	return func(c *client) {
		key, l := of(c)
		in := takeEvent{key: key, n: c.IntN(burst + 1), at: time.Duration(len(c.ops)+c.IntN(3)) * pace}
		c.do(in, func() any { return l.TakeAt(t0.Add(in.at), in.n) })
	}
}

func TestTokenBucket(t *testing.T) {
	checkModel(t, bucketModel(), func() func(*client) {
		b := limiter.NewTokenBucket(limiter.TokenBucketConfig{Rate: limiter.Per(1, token), Burst: burst})
		t0 := time.Now()
		return requestStep(t0, token/2, func(*client) (string, limiter.TimedLimiter) { return "", b })
	})
}

// The test of a group models each key as a bucket of its own. All calls have the same time, because
// a call with an earlier time may find fewer tokens after other keys were evicted.
func TestLimiterGroup(t *testing.T) {
	checkModel(t, bucketModel(), func() func(*client) {
		g := limiter.NewGroup(limiter.GroupConfig[string]{Rate: limiter.Per(1, token), Burst: burst})
		t0 := time.Now()
		return requestStep(t0, 0, func(c *client) (string, limiter.TimedLimiter) {
			key := string(rune('a' + c.IntN(3)))
			return key, g.Get(key)
		})
	})
}
