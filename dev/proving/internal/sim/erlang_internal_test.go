package sim

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// textbookQueue is a queue with Poisson arrivals and exponential times, as in the textbooks.
type textbookQueue struct {
	servers int
	load    float64 // per server
	room    int     // of the queue
}

const meanTime = 10 * time.Millisecond

// erlangB returns the probability that all of c servers are busy, if no call can wait.
func erlangB(c int, offered float64) float64 {
	b := 1.0
	for i := 1; i <= c; i++ {
		b = offered * b / (float64(i) + offered*b)
	}
	return b
}

// erlangC returns the probability that a call waits, if all may.
func erlangC(c int, offered float64) float64 {
	b := erlangB(c, offered)
	return b / (1 - offered/float64(c)*(1-b))
}

func (q textbookQueue) offered() float64 { return q.load * float64(q.servers) }

// world returns the queue as a world with about this number of calls.
func (q textbookQueue) world(calls int) World {
	rate := q.offered() / meanTime.Seconds()
	return World{
		Service: Service{Servers: q.servers, Time: Exponential(meanTime), Queue: q.room},
		Clients: []Client{{Rate: rate, Timeout: time.Hour}},
		For:     time.Duration(float64(calls) / rate * float64(time.Second)),
	}
}

const seeds = 20

// studentQuantile is the two-sided 99.9 % quantile of Student's t distribution with seeds - 1
// degrees of freedom.
const studentQuantile = 3.883

// interval returns the mean of one value per seed, and half of its 99.9 % confidence interval.
func interval(values []float64) (mean, half float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	variance := 0.0
	for _, v := range values {
		variance += (v - mean) * (v - mean) / float64(len(values)-1)
	}
	return mean, studentQuantile * math.Sqrt(variance/float64(len(values)))
}

// requireInInterval checks that the expected value is in the interval, and that the interval is
// narrow enough.
func requireInInterval(t *testing.T, what string, expected, widest float64, values []float64) {
	t.Helper()
	mean, half := interval(values)
	t.Logf("%s: %.5f ± %.5f, expected %.5f", what, mean, half, expected)
	require.Less(t, half, widest*expected, what)
	require.InDelta(t, expected, mean, half, what)
}

const skipReason = "takes up to 10 s: make test-long runs it"

func TestWaitingAgreesWithErlang(t *testing.T) {
	for _, test := range []struct {
		textbookQueue
		widest float64 // relative half of the interval of the mean wait
	}{
		{textbookQueue{1, 0.5, 1e6}, 0.1},
		{textbookQueue{1, 0.8, 1e6}, 0.2},
		{textbookQueue{1, 0.95, 1e6}, 0.4},
		{textbookQueue{4, 0.5, 1e6}, 0.2},
		{textbookQueue{4, 0.8, 1e6}, 0.2},
		{textbookQueue{4, 0.95, 1e6}, 0.4},
		{textbookQueue{16, 0.5, 1e6}, 0.5},
		{textbookQueue{16, 0.8, 1e6}, 0.25},
		{textbookQueue{16, 0.95, 1e6}, 0.4},
	} {
		t.Run(fmt.Sprintf("%d servers, load %v", test.servers, test.load), func(t *testing.T) {
			t.Parallel()
			calls, warmup := 8_000, 1_000
			if test.load > 0.9 { // the queue forgets its past in 1,560 times the time of a call
				calls, warmup = 40_000, 10_000
			}
			if testing.Short() && calls > 8_000 || !runLong && (calls > 8_000 || test.servers != 4) {
				t.Skip(skipReason)
			}
			var waiting, waits []float64
			for seed := range uint64(seeds) {
				w := test.world(calls)
				waited, wait := waitsOf(w, seed, warmup)
				waiting = append(waiting, waited)
				waits = append(waits, wait)
			}
			c := erlangC(test.servers, test.offered())
			free := float64(test.servers) - test.offered()
			requireInInterval(t, "probability to wait", c, test.widest, waiting)
			requireInInterval(t, "mean wait", c*meanTime.Seconds()/free, test.widest, waits)
		})
	}
}

// waitsOf returns the share of calls that wait, and the mean wait in seconds.
func waitsOf(w World, seed uint64, warmup int) (waited, mean float64) {
	records, _ := runRecorded(w, seed)
	n := 0.0
	for _, r := range records {
		if r.call.index < warmup {
			continue
		}
		n++
		if wait := r.took() - r.works; wait > 0 {
			waited++
			mean += wait.Seconds()
		}
	}
	return waited / n, mean / n
}

func TestLossAgreesWithErlang(t *testing.T) {
	for _, q := range []textbookQueue{{1, 0.5, 0}, {4, 1, 0}, {16, 0.8, 0}, {16, 2, 0}, {2, 0.9, 3}, {1, 1.5, 5}} {
		t.Run(fmt.Sprintf("%d servers, load %v, room for %d", q.servers, q.load, q.room), func(t *testing.T) {
			t.Parallel()
			if !runLong && q.servers == 16 {
				t.Skip(skipReason)
			}
			var lost []float64
			for seed := range uint64(seeds) {
				w := q.world(8_000)
				w.Warmup = w.For / 10
				f := Run(w, None(), seed)
				lost = append(lost, float64(f.Failed)/float64(f.Offered))
			}
			// If all servers are busy, the probability of one more waiting call is the probability
			// of the state before it, multiplied by the load. Only the last state refuses.
			b := erlangB(q.servers, q.offered())
			sum, last := 1-b, b
			for range q.room {
				sum += last
				last *= q.load
			}
			requireInInterval(t, "lost", last/(sum+last), 0.15, lost)
		})
	}
}
