package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/stat"
)

const (
	houses  = 200
	callers = 64
)

// world is all that there is.
type world struct {
	faults  faults
	seed    uint64
	houses  []*house
	crowd   *crowd
	stricts []*strict
	fleets  *fleets // nil where there is no Redis
	monitor *alert.Monitor
	look    *onlookers
	growth  growth
	told    atomic.Int64 // notifications
	ended   atomic.Bool  // calls are over, and the receiver of notifications is well
}

// soak runs everything for a while. It returns what was wrong, and the sums.
func soak(ctx context.Context, length time.Duration, seed uint64) ([]string, string) {
	before := runtime.NumGoroutine()
	w, err := newWorld(seed)
	if err != nil {
		return []string{err.Error()}, ""
	}
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	w.live(ctx, max(length/60, 50*time.Millisecond))
	w.ended.Store(true)
	w.settle(before)
	return w.faults.list(), w.String()
}

func newWorld(seed uint64) (*world, error) {
	r := rand.New(rand.NewPCG(seed, 0))
	w := &world{seed: seed, stricts: newStricts(r), growth: growth{began: time.Now()}}
	w.crowd = newCrowd(&w.faults)
	sources := []stat.Source{w.crowd.group}
	var rules []alert.Rule
	for i := range houses {
		h := newHouse(i, r, &w.faults)
		w.houses = append(w.houses, h)
		sources = append(sources, h.gate)
		rules = append(rules, alert.Rule{
			Name: h.gate.Name(), When: alert.Above(0.3), MinCalls: 5,
			Value: alert.FailureRate(h.gate, time.Second), For: 20 * time.Millisecond,
		})
	}
	var err error
	if w.fleets, err = newFleets(&w.faults); err != nil {
		return nil, err
	}
	if w.fleets != nil {
		sources = append(sources, w.fleets.sources()...)
	}
	tell := alert.Func("soak", func(context.Context, alert.Alert) error {
		if w.told.Add(1)%10 == 0 && !w.ended.Load() {
			return errFailed // is tried again
		}
		return nil
	})
	w.monitor = alert.NewMonitor(alert.Config{Interval: 50 * time.Millisecond, Notify: []alert.Notifier{tell}, Logger: slog.New(slog.DiscardHandler)}, rules...)
	w.look, err = newOnlookers(&w.faults, append(sources, w.monitor)...)
	return w, err
}

// live lets everything go on until the context is done, and returns when all of it has ended.
func (w *world) live(ctx context.Context, sampled time.Duration) {
	var all sync.WaitGroup
	defer all.Wait()
	for i := range callers {
		r := rand.New(rand.NewPCG(w.seed, uint64(i+1)))
		all.Go(func() { w.call(ctx, r) })
	}
	r := rand.New(rand.NewPCG(w.seed, callers+1))
	all.Go(func() { every(ctx, 5*time.Millisecond, func() { w.disturb(r) }) })
	all.Go(func() { every(ctx, 20*time.Millisecond, w.audit) })
	all.Go(func() { every(ctx, 50*time.Millisecond, w.look.scrape) })
	all.Go(func() { every(ctx, 70*time.Millisecond, func() { w.look.collect(ctx) }) })
	all.Go(func() { every(ctx, sampled, w.growth.sample) })
	all.Go(func() { w.monitor.Run(ctx) })
	if w.fleets != nil {
		r := rand.New(rand.NewPCG(w.seed, callers))
		all.Go(func() { w.fleets.serve(ctx, r) })
		for _, n := range w.fleets.nodes {
			all.Go(func() { _ = n.calls.Run(ctx) })
		}
	}
	for i := range 4 {
		r := rand.New(rand.NewPCG(w.seed, uint64(callers+2+i)))
		all.Go(func() {
			every(ctx, 10*time.Millisecond, func() { w.look.browse(ctx, time.Duration(r.IntN(1500))*time.Millisecond) })
		})
	}
}

func every(ctx context.Context, d time.Duration, fn func()) {
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

// call makes calls of all kinds. Some callers give up at once, some after a moment.
func (w *world) call(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		mine, cancel := context.WithCancel(context.WithoutCancel(ctx))
		if r.IntN(10) == 0 {
			time.AfterFunc(time.Duration(r.IntN(5000))*time.Microsecond, cancel)
		}
		switch r.IntN(5) {
		case 4:
			if w.fleets != nil {
				w.fleets.visit(context.WithoutCancel(mine), r)
			}
		case 0:
			w.crowd.visit(context.WithoutCancel(mine), r)
		case 1:
			w.stricts[r.IntN(len(w.stricts))].visit()
		default:
			w.houses[r.IntN(len(w.houses))].visit(mine)
		}
		cancel()
		if r.IntN(50) == 0 {
			time.Sleep(time.Duration(r.IntN(1000)) * time.Microsecond)
		}
	}
}

// disturb changes something.
func (w *world) disturb(r *rand.Rand) {
	w.houses[r.IntN(houses)].service.change(r)
	w.houses[r.IntN(houses)].meddle(r)
	if r.IntN(20) == 0 {
		w.crowd.service.change(r)
	}
}

func (w *world) audit() {
	for _, h := range w.houses {
		h.audit()
	}
	w.crowd.audit()
	if w.fleets != nil {
		w.fleets.audit()
	}
	for _, s := range w.stricts {
		s.audit(&w.faults)
	}
}

// settle ends what is left and closes the books.
func (w *world) settle(before int) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := w.monitor.Flush(ctx); err != nil {
		w.faults.add("alerts", "%v", err)
	}
	w.look.scrape()
	w.look.page.Client().CloseIdleConnections()
	w.look.page.Close()
	for _, h := range w.houses {
		h.settle()
	}
	w.crowd.settle()
	if w.fleets != nil {
		w.fleets.settle()
	}
	w.growth.judge(&w.faults)
	for ; runtime.NumGoroutine() > before && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
	}
	if now := runtime.NumGoroutine(); now > before {
		w.faults.add("goroutines", "%d before, %d after", before, now)
	}
}

func (w *world) String() string {
	fleet := "no redis-server, so no fleet"
	if f := w.fleets; f != nil {
		fleet = fmt.Sprintf("fleet: %d asked, %d admitted, %d refused for want of Redis, which was started %d times",
			f.asked.Load(), f.taken.Load(), f.away.Load(), f.starts.Load())
	}
	var made, ran, open, limited int64
	for _, h := range w.houses {
		made, ran = made+h.made.Load(), ran+h.ran.Load()
		open, limited = open+h.refusedOpen.Load(), limited+h.refusedLimited.Load()
	}
	return fmt.Sprintf("gates: %d calls, %d ran, %d refused by breakers, %d by limits\n"+
		"group: %d calls, %d ran, %v keys evicted\n%s\n"+
		"looks: %d scrapes, %d collections, %d visits with %d events; %d notifications\n%v",
		made, ran, open, limited, w.crowd.made.Load(), w.crowd.ran.Load(), w.crowd.evictions(), fleet,
		w.look.scrapes.Load(), w.look.collections.Load(), w.look.visits.Load(), w.look.events.Load(), w.told.Load(), &w.growth)
}
