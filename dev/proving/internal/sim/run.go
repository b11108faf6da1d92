package sim

import (
	"fmt"
	"sync"
	"testing/synctest"
	"time"
)

// Run runs the world with guards of one kind, and returns what it shows. The seed stands for all
// random numbers of the service and its callers. Several runs may go on at the same time.
//
// It panics if the world is invalid, if a guard panics, or if a guard breaks the contract of Guard.
func Run(world World, maker Maker, seed uint64) Figures {
	r := newRun(world, maker, seed)
	r.runAll(maker)
	return r.tally.figures()
}

func newRun(world World, maker Maker, seed uint64) *run {
	if err := world.Validate(); err != nil {
		panic(err)
	}
	return &run{world: world, guardName: maker.Name, seed: seed}
}

// runAll runs the simulation, and panics as Run says.
func (r *run) runAll(maker Maker) {
	err := inBubble(func() {
		r.prepare(maker)
		r.handleEvents()
		r.closeGuards()
	})
	if r.failure != nil {
		err = r.failure
	}
	if err != nil {
		panic(fmt.Errorf("sim: guard %q, seed %d: %w", maker.Name, r.seed, err))
	}
}

// run is one simulation. A single goroutine, the driver, takes one event after another and waits
// after each until all others are blocked, so that events at one instant have an order too. Each
// attempt has a goroutine of its own, in which the guard decides.
type run struct {
	world     World
	guardName string
	seed      uint64

	mu        sync.Mutex
	events    events
	began     time.Time
	timer     *time.Timer // wakes the driver
	sleeping  bool        // the driver waits for the timer
	woken     bool        // other goroutines may run since the last synctest.Wait
	service   *service
	clients   []*client
	processes []*process
	ended     []*attempt // of stepped guards, which have a result since the last event
	live      int        // calls that have begun and not ended
	coming    int        // clients and users that will call again
	tally     tally
	traced    bool // calls are wanted in place of figures
	failure   error
}

// maxReturnWait is how long a simulation waits, after its end, for calls that have not returned.
const maxReturnWait = endlessTime

// prepare creates the guards and schedules the events of the world.
func (r *run) prepare(maker Maker) {
	for i, c := range r.world.Clients {
		r.clients = append(r.clients, newClient(r, i, c))
		for range max(c.Processes, 1) {
			setting := Setting{World: r.world, Process: len(r.processes), Seed: r.seed, run: r}
			r.processes = append(r.processes, &process{guard: maker.New(setting), budget: fullBudget})
		}
	}
	r.began = time.Now() // some guards move the clock when they are made
	r.timer = time.NewTimer(maxReturnWait)
	r.tally = newTally(&r.world, r.traced)
	r.service = newService(r)
	r.push(event{at: r.world.Warmup, kind: mark, index: markWarm})
	if r.world.Trouble != (Span{}) {
		r.push(event{at: r.world.Trouble.From, kind: mark, index: markTrouble})
		r.push(event{at: r.world.Trouble.To, kind: mark, index: markAfter})
	}
	r.push(event{at: r.world.For + maxReturnWait, kind: overdue})
	for _, c := range r.clients {
		c.start()
	}
}

// handleEvents handles events until all calls and all attempts have ended.
func (r *run) handleEvents() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.failure == nil && !r.finished() {
		r.woken = false
		for !r.woken && r.sleep() {
			r.handle(r.events.pop())
			for _, a := range r.ended {
				a.secondStep()
			}
			r.ended = r.ended[:0]
		}
		r.callUnlocked(synctest.Wait)
	}
}

func (r *run) callUnlocked(f func()) {
	r.mu.Unlock()
	defer r.mu.Lock()
	f()
}

// sleep waits, without the lock, until the next event is due. It returns false if the run is over,
// or if another goroutine woke the driver, because there may be an earlier event then.
func (r *run) sleep() bool {
	for len(r.events) > 0 && r.events[0].stale() {
		r.events.pop()
	}
	if r.failure != nil || r.finished() {
		return false
	}
	wait := r.events[0].at - r.now()
	if wait <= 0 {
		return true
	}
	r.sleeping = true
	r.timer.Reset(wait)
	r.callUnlocked(func() { <-r.timer.C })
	r.sleeping = false
	return !r.woken
}

// finished reports whether nothing that is counted will change any more.
func (r *run) finished() bool { return r.live == 0 && r.coming == 0 && r.service.idle() }

func (r *run) now() time.Duration { return time.Since(r.began) }

// push adds an event. A goroutine other than the driver calls notifyDriver too.
func (r *run) push(e event) { r.events.push(e) }

// notifyDriver signals the driver that a goroutine has changed something. This is needed only for a
// goroutine that a guard has woken: the driver waits for all others anyway.
func (r *run) notifyDriver() {
	r.woken = true
	if r.sleeping {
		r.timer.Reset(0)
	}
}

func (r *run) fail(err error) {
	if r.failure == nil {
		r.failure = err
	}
	r.notifyDriver()
}

func (r *run) handle(e event) {
	switch e.kind {
	case mark:
		r.sample(e.index)
	case toggle:
		r.service.toggleFault(e.index)
	case finish:
		r.service.finished(e.attempt)
	case fail:
		r.service.failed(e.attempt)
	case expire:
		e.attempt.expire()
	case wake:
		e.attempt.wake()
	case enter:
		r.service.enter(e.attempt)
	case begin:
		e.attempt.begin()
	case arrive:
		r.clients[e.index].arrive(e.attempt)
	case overdue:
		r.fail(fmt.Errorf("%d calls have not returned %v after the end", r.live, maxReturnWait))
	}
}

// sample notes how often the guards have opened.
func (r *run) sample(index int) {
	openings := 0
	r.callUnlocked(func() { // a guard may have locks of its own
		for _, p := range r.processes {
			n := p.guard.Openings()
			openings += n
			if index <= markTrouble {
				p.openings = n
			}
		}
	})
	r.tally.openings[index] = openings
}

func (r *run) closeGuards() {
	r.mu.Lock()
	r.sample(markEnd)
	r.mu.Unlock()
	for _, p := range r.processes {
		if c, ok := p.guard.(interface{ Close() }); ok {
			c.Close()
		}
	}
}
