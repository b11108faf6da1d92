package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/stat"
)

const (
	gateCount = 200
	callers   = 64
)

// workload holds all objects under test.
type workload struct {
	faults    faults
	seed      uint64
	gates     []*gateUnderTest
	group     *groupUnderTest
	windows   []*windowUnderTest
	fleet     *fleetUnderTest // nil without a redis-server
	monitor   *alert.Monitor
	observers *observers
	growth    growth
	notified  atomic.Int64 // notifications
	ended     atomic.Bool  // no more calls, and the receiver of notifications no longer fails
}

// soak runs everything for the given time. It returns the faults and a summary.
func soak(ctx context.Context, length time.Duration, seed uint64) ([]string, string) {
	before := runtime.NumGoroutine()
	w, err := newWorkload(seed)
	if err != nil {
		return []string{err.Error()}, ""
	}
	var redis *exec.Cmd
	if w.fleet != nil {
		if redis, err = w.fleet.startRedis(); err != nil {
			return []string{err.Error()}, ""
		}
	}
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	w.start(ctx, max(length/60, 50*time.Millisecond), redis)
	w.ended.Store(true)
	w.finish(before)
	return w.faults.list(), w.String()
}

func newWorkload(seed uint64) (*workload, error) {
	r := rand.New(rand.NewPCG(seed, 0))
	w := &workload{seed: seed, windows: newWindows(r), growth: growth{began: time.Now()}}
	w.group = newGroup(&w.faults)
	sources := []stat.Source{w.group.group}
	var rules []alert.Rule
	for i := range gateCount {
		h := newGate(i, r, &w.faults)
		w.gates = append(w.gates, h)
		sources = append(sources, h.gate)
		rules = append(rules, alert.Rule{
			Name: h.gate.Name(), When: alert.Above(0.3), MinCalls: 5,
			Value: alert.FailureRate(h.gate, time.Second), For: 20 * time.Millisecond,
		})
	}
	var err error
	if w.fleet, err = newFleet(&w.faults); err != nil {
		return nil, err
	}
	if w.fleet != nil {
		sources = append(sources, w.fleet.sources()...)
	}
	notifier := alert.Func("soak", func(context.Context, alert.Alert) error {
		if w.notified.Add(1)%10 == 0 && !w.ended.Load() {
			return errFailed // the notifier tries again
		}
		return nil
	})
	w.monitor = alert.NewMonitor(alert.Config{Interval: 50 * time.Millisecond, Notify: []alert.Notifier{notifier}, Logger: slog.New(slog.DiscardHandler)}, rules...)
	w.observers, err = newObservers(&w.faults, append(sources, w.monitor)...)
	return w, err
}

// start runs everything until the context is done, and returns when all of it has ended. It kills
// the given Redis.
func (w *workload) start(ctx context.Context, sampleInterval time.Duration, redis *exec.Cmd) {
	var all sync.WaitGroup
	defer all.Wait()
	for i := range callers {
		r := rand.New(rand.NewPCG(w.seed, uint64(i+1)))
		all.Go(func() { w.call(ctx, r) })
	}
	r := rand.New(rand.NewPCG(w.seed, callers+1))
	all.Go(func() { repeatEvery(ctx, 5*time.Millisecond, func() { w.changeAtRandom(r) }) })
	all.Go(func() { repeatEvery(ctx, 20*time.Millisecond, w.audit) })
	all.Go(func() { repeatEvery(ctx, 50*time.Millisecond, w.observers.scrape) })
	all.Go(func() { repeatEvery(ctx, 70*time.Millisecond, func() { w.observers.collect(ctx) }) })
	all.Go(func() { repeatEvery(ctx, sampleInterval, w.growth.sample) })
	all.Go(func() { w.monitor.Run(ctx) })
	if w.fleet != nil {
		r := rand.New(rand.NewPCG(w.seed, callers))
		all.Go(func() { w.fleet.runRedis(ctx, r, redis) })
		for _, n := range w.fleet.nodes {
			all.Go(func() { _ = n.calls.Run(ctx) })
		}
	}
	for i := range 4 {
		r := rand.New(rand.NewPCG(w.seed, uint64(callers+2+i)))
		all.Go(func() {
			repeatEvery(ctx, 10*time.Millisecond, func() { w.observers.browse(ctx, time.Duration(r.IntN(1500))*time.Millisecond) })
		})
	}
}

func repeatEvery(ctx context.Context, d time.Duration, fn func()) {
	ticker := time.NewTicker(d)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			fn()
		}
	}
}

// call makes calls of all kinds, and cancels some of them after a moment.
func (w *workload) call(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		callCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		if r.IntN(10) == 0 {
			time.AfterFunc(time.Duration(r.IntN(5000))*time.Microsecond, cancel)
		}
		switch r.IntN(5) {
		case 4:
			if w.fleet != nil {
				w.fleet.makeRequest(context.WithoutCancel(callCtx), r)
			}
		case 0:
			w.group.makeRequest(context.WithoutCancel(callCtx), r)
		case 1:
			w.windows[r.IntN(len(w.windows))].makeRequest()
		default:
			w.gates[r.IntN(len(w.gates))].makeRequest(callCtx)
		}
		cancel()
		if r.IntN(50) == 0 {
			time.Sleep(time.Duration(r.IntN(1000)) * time.Microsecond)
		}
	}
}

// changeAtRandom changes an object at random.
func (w *workload) changeAtRandom(r *rand.Rand) {
	w.gates[r.IntN(gateCount)].service.change(r)
	w.gates[r.IntN(gateCount)].override(r)
	if r.IntN(20) == 0 {
		w.group.service.change(r)
	}
}

func (w *workload) audit() {
	for _, h := range w.gates {
		h.audit()
	}
	w.group.audit()
	if w.fleet != nil {
		w.fleet.audit()
	}
	for _, s := range w.windows {
		s.audit(&w.faults)
	}
}

// finish ends the remaining calls and compares all counts.
func (w *workload) finish(before int) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := w.monitor.Flush(ctx); err != nil {
		w.faults.add("alerts", "%v", err)
	}
	w.observers.scrape()
	w.observers.page.Client().CloseIdleConnections()
	w.observers.page.Close()
	for _, h := range w.gates {
		h.checkTotals()
	}
	w.group.checkTotals()
	if w.fleet != nil {
		w.fleet.checkTotals()
	}
	w.growth.check(&w.faults)
	for ; runtime.NumGoroutine() > before && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
	}
	if now := runtime.NumGoroutine(); now > before {
		w.faults.add("goroutines", "%d before, %d after", before, now)
	}
}

func (w *workload) String() string {
	fleet := "no redis-server, so no fleet"
	if f := w.fleet; f != nil {
		fleet = fmt.Sprintf("fleet: %d asked, %d allowed, %d refused while Redis was unavailable, Redis started %d times",
			f.asked.Load(), f.taken.Load(), f.unavailable.Load(), f.starts.Load())
	}
	var made, ran, open, limited int64
	for _, h := range w.gates {
		made, ran = made+h.made.Load(), ran+h.ran.Load()
		open, limited = open+h.refusedOpen.Load(), limited+h.refusedLimited.Load()
	}
	return fmt.Sprintf("gates: %d calls, %d ran, %d refused by breakers, %d by limits\n"+
		"group: %d calls, %d ran, %v keys evicted\n%s\n"+
		"observers: %d scrapes, %d collections, %d visits with %d events; %d notifications\n%v",
		made, ran, open, limited, w.group.made.Load(), w.group.ran.Load(), w.group.evictions(), fleet,
		w.observers.scrapes.Load(), w.observers.collections.Load(), w.observers.visits.Load(), w.observers.events.Load(), w.notified.Load(), &w.growth)
}
