package linear_test

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/weir-go/weir/limiter"
)

const (
	bucketCount = 4
	span        = bucketCount * token
)

// windowState holds the buckets in the window: the newest one, and those before it within the span.
type windowState struct {
	newest int64
	counts [bucketCount + 1]int // the newest last
}

func (s *windowState) advance(at time.Duration) {
	for ; s.newest < int64(at/token); s.newest++ {
		copy(s.counts[:], s.counts[1:])
		s.counts[bucketCount] = 0
	}
}

func (s *windowState) usedTokens() (n int) {
	for _, count := range s.counts {
		n += count
	}
	return n
}

// windowModel counts tokens by bucket. It checks OK and Remaining of each answer.
func windowModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return windowState{} },
		Step: func(state, input, output any) (bool, any) {
			s, in := state.(windowState), input.(takeEvent)
			s.advance(in.at)
			ok := in.n <= burst-s.usedTokens()
			if ok {
				s.counts[bucketCount] += in.n
			}
			r := output.(limiter.Result)
			return r.OK == ok && r.Remaining == burst-s.usedTokens(), s
		},
	}
}

// newSlidingWindow returns a limiter and the start of its buckets, which is its creation, to a
// quarter of a token.
func newSlidingWindow() (w *limiter.Window, t0 time.Time) {
	for began := time.Now(); ; began = t0 {
		w = limiter.NewSlidingWindow(limiter.WindowConfig{Limit: burst, Window: span, Buckets: bucketCount})
		if t0 = time.Now(); t0.Sub(began) < token/4 {
			return w, t0
		}
	}
}

func TestSlidingWindow(t *testing.T) {
	checkModel(t, windowModel(), func() func(*client) {
		w, t0 := newSlidingWindow()
		return requestStep(t0, token/2, func(*client) (string, limiter.TimedLimiter) { return "", w })
	})
}
