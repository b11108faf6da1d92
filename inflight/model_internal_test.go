package inflight

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"
)

// model is a service with servers and one queue. It is called at random times through an
// adaptation. Everything except the adaptation is simulated.
type model struct {
	adaptation adaptation
	random     *rand.Rand
	now        time.Duration
	events     events
	queue      []*modelCall
	busy       int
	inFlight   int
	started    uint64
	run        int // the number of the present run

	rate    float64 // of calls, per second
	servers int
	times   func(*rand.Rand) time.Duration
	timeout func(*rand.Rand) time.Duration
	states  bool    // the callers state their timeouts as deadlines
	fails   float64 // share of calls that fail at once
	words   float64 // share of calls that are refused at once, with the word that it is overloaded
	lost    float64 // share of calls that get no answer
	room    int     // calls that may wait; the service refuses others with its own word
	tally
}

// tally counts the calls of a run by how they ended. A call counts when it ends.
type tally struct {
	good, failed, refused, most int // most calls in flight
	slowest                     time.Duration
}

type modelCall struct {
	began, takes time.Duration
	allowed      time.Duration
	left         bool // its caller has an error, or has gone
}

type event struct {
	at   time.Duration
	what func()
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// newModel returns a service of ten servers that take 50 ms for a call, half of whose capacity is
// used.
func newModel(seed uint64) *model {
	return &model{
		adaptation: newAdaptation(maxLimit, 0), states: true, room: math.MaxInt, random: rand.New(rand.NewPCG(seed, 1)), servers: 10, rate: 100,
		times: exponential(50 * time.Millisecond), timeout: constantTime(time.Second),
	}
}

func exponential(mean time.Duration) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration { return time.Duration(r.ExpFloat64() * float64(mean)) }
}

func constantTime(d time.Duration) func(*rand.Rand) time.Duration {
	return func(*rand.Rand) time.Duration { return d }
}

func (m *model) schedule(d time.Duration, what func()) { heap.Push(&m.events, event{m.now + d, what}) }

// advance advances the time, and returns the counts of the calls that ended meanwhile.
func (m *model) advance(d time.Duration) tally {
	m.tally = tally{}
	m.run++
	run, until := m.run, m.now+d
	var arrive func()
	arrive = func() {
		if m.run == run {
			m.makeCall()
			m.schedule(time.Duration(m.random.ExpFloat64()/m.rate*float64(time.Second)), arrive)
		}
	}
	arrive()
	m.startQueuedCalls()
	for len(m.events) > 0 && m.events[0].at < until {
		e := heap.Pop(&m.events).(event)
		m.now = e.at
		e.what()
	}
	m.now = until
	return m.tally
}

// makeCall makes a call, unless the bound refuses it.
func (m *model) makeCall() {
	if m.inFlight >= int(m.adaptation.wholeLimit()) {
		m.adaptation.advance(m.now, m.started, m.inFlight)
		if m.adaptation.limitReached(); m.inFlight >= int(m.adaptation.wholeLimit()) {
			m.refused++
			return
		}
	}
	m.inFlight++
	m.started++
	m.most = max(m.most, m.inFlight)
	c := &modelCall{began: m.now, takes: m.times(m.random)}
	if m.states {
		c.allowed = m.timeout(m.random)
	}
	if m.random.Float64() < m.fails {
		m.endCall(c, failed)
		return
	}
	if len(m.queue) >= m.room || m.random.Float64() < m.words {
		m.endCall(c, overloaded)
		return
	}
	m.schedule(max(c.allowed, m.timeout(m.random)), func() { m.endCall(c, failed) })
	if m.random.Float64() < m.lost {
		return
	}
	m.queue = append(m.queue, c)
	m.startQueuedCalls()
}

// startQueuedCalls starts queued calls on free servers. They also work on calls whose callers have
// gone.
func (m *model) startQueuedCalls() {
	for m.busy < m.servers && len(m.queue) > 0 {
		c := m.queue[0]
		m.queue = m.queue[1:]
		m.busy++
		m.schedule(c.takes, func() {
			m.busy--
			m.endCall(c, well)
			m.startQueuedCalls()
		})
	}
}

func (m *model) endCall(c *modelCall, e ending) {
	if c.left {
		return
	}
	c.left = true
	m.adaptation.advance(m.now, m.started, m.inFlight)
	latency := m.now - c.began
	switch e {
	case well:
		m.adaptation.recordSuccess(latency, c.allowed)
	case overloaded:
		m.adaptation.recordOverloaded(latency)
	default:
		m.adaptation.recordFailure(latency, c.allowed)
	}
	m.inFlight--
	if e != well {
		m.failed++
		return
	}
	m.good++
	m.slowest = max(m.slowest, m.now-c.began)
}
