package latency

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/internal/clock"
)

const (
	// generationSpan is how long calls are counted in one generation. The estimate covers the calls
	// that ended in the present generation and in the one before it. These are the calls of the
	// last 5 to 10 s.
	generationSpan = int64(5 * time.Second)
	// updateEvery is how old an estimate may be.
	updateEvery = int64(100 * time.Millisecond)
	// Improbable is the chance below which an answer in time counts as improbable.
	Improbable = 0.05
	// Evidence is the number of calls that an estimate for a time needs. A call counts if it is
	// known whether it had an answer within that time. If the chance of an answer is Improbable or
	// more, that many calls in a row go without an answer in less than 5 % of cases.
	Evidence = 60
)

// Survival estimates the chance that a call is answered within a time, from the durations of recent
// calls. A call that ended without an answer, such as by the deadline of its caller, would have
// been answered later or never: its duration is censored. The estimate is the product limit of
// Kaplan and Meier (Nonparametric Estimation from Incomplete Observations, 1958). Of n calls that
// last until a bucket of durations, d are answered in it. The product of 1 − d/n over the buckets
// is the share of calls without an answer.
//
// The estimate is exactly that of durations rounded up to the bounds of their buckets, which are at
// most 9.1 % higher. A time is rounded up too.
//
// Times are nanoseconds since an origin of the caller. All methods may be called from any number of
// goroutines. The zero value is ready to use.
type Survival struct {
	generations [2]generation
	present     atomic.Int64 // the number of the present generation, whose parity is its index
	updateAt    atomic.Int64
	estimate    atomic.Pointer[Estimate]
	mu          sync.Mutex // held to update
}

// generation counts calls by the bucket of their duration.
type generation struct {
	answered, cut sparseCounts
}

func (g *generation) clear() {
	g.answered.clear()
	g.cut.clear()
}

// sparseCounts are counters by bucket, in parts of which each is made when a call falls into it.
// The durations of the calls to one service fall into a few parts.
type sparseCounts [Buckets / partSize]atomic.Pointer[[partSize]atomic.Uint32]

const partSize = 32

func (c *sparseCounts) add(bucket int) {
	p := &c[bucket/partSize]
	if p.Load() == nil {
		p.CompareAndSwap(nil, new([partSize]atomic.Uint32))
	}
	p.Load()[bucket%partSize].Add(1)
}

func (c *sparseCounts) load(bucket int) (n int64) {
	if part := c[bucket/partSize].Load(); part != nil {
		n = int64(part[bucket%partSize].Load())
	}
	return n
}

func (c *sparseCounts) clear() {
	for i := range c {
		if part := c[i].Load(); part != nil {
			for j := range part {
				part[j].Store(0)
			}
		}
	}
}

// Estimate is the result of a Survival at one moment. The zero value knows nothing.
type Estimate struct {
	// Until is the longest time within which an answer is improbable, or 0 if none is known.
	Until   time.Duration
	chances []float32 // by bucket, up to Until
}

// Chance returns the chance of an answer within a time of at most Until.
func (e *Estimate) Chance(d time.Duration) float64 {
	if d <= 0 || len(e.chances) == 0 {
		return 0
	}
	return float64(e.chances[min(bucketOf(int64(d)), len(e.chances)-1)])
}

// Record counts a call that ended at the time, with an answer or without one.
func (s *Survival) Record(at int64, took time.Duration, answered bool) {
	s.updateIfDue(at)
	counts := &s.generations[s.present.Load()&1]
	i := bucketOf(max(int64(took), 0))
	if answered {
		counts.answered.add(i)
	} else {
		counts.cut.add(i)
	}
}

// Estimate returns the estimate at the time. It may be 100 ms old.
func (s *Survival) Estimate(at int64) *Estimate {
	s.updateIfDue(at)
	return s.estimate.Load()
}

// Forget forgets all calls. A call that ends meanwhile may be counted or not.
func (s *Survival) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generations[0].clear()
	s.generations[1].clear()
	s.estimate.Store(new(Estimate))
}

// updateIfDue computes the estimate again if that is due. It forgets all calls if the time has gone
// back, because it is that of another clock then.
func (s *Survival) updateIfDue(at int64) {
	due, known := s.updateAt.Load(), s.estimate.Load() != nil
	back := known && due-at > updateEvery+int64(clock.ReadTolerance)
	if known && at < due && !back {
		return
	}
	s.estimate.CompareAndSwap(nil, new(Estimate))
	if !s.mu.TryLock() {
		return // another call does it
	}
	defer s.mu.Unlock()
	if back {
		s.generations[0].clear()
		s.generations[1].clear()
	}
	s.advanceGeneration(at)
	s.estimate.Store(s.currentEstimate())
	s.updateAt.Store(at + updateEvery)
}

// advanceGeneration begins the generation of the time. It does nothing for a time of the generation
// before, which is the time of a late call. If the time is more than one generation away, it clears
// both generations, because no count is of the last 10 s.
func (s *Survival) advanceGeneration(at int64) {
	n := at / generationSpan
	if at%generationSpan < 0 {
		n--
	}
	present := s.present.Load()
	if n == present || n == present-1 {
		return
	}
	s.generations[n&1].clear()
	if n != present+1 {
		s.generations[(n+1)&1].clear()
	}
	s.present.Store(n)
}

// currentEstimate returns the estimate of the present counts.
func (s *Survival) currentEstimate() *Estimate {
	var answered, cut [Buckets]int64
	// the calls that had an answer before the end of the bucket, or are known to have had none
	known := int64(0)
	for i := range Buckets {
		for g := range s.generations {
			answered[i] += s.generations[g].answered.load(i)
			cut[i] += s.generations[g].cut.load(i)
		}
		known += answered[i] + cut[i]
	}
	e := new(Estimate)
	left, survival := known, 1.0 // left are the calls that last until the bucket
	for i := range Buckets {
		if left > 0 {
			survival *= 1 - float64(answered[i])/float64(left)
		}
		if known < Evidence || 1-survival >= Improbable {
			break
		}
		e.chances = append(e.chances, float32(1-survival))
		e.Until = time.Duration(longestInBucket[i])
		known -= cut[i]
		left -= answered[i] + cut[i]
	}
	return e
}
