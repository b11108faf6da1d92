package main

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"time"
)

// demand is the number of customers of each shop per second, on average.
const demand = 200

// demo is two shops that differ in one thing: one of them calls its payment service through weir.
// Each shop has a payment service of its own, so that neither outage depends on the other shop.
type demo struct {
	start         time.Time
	length        time.Duration
	outage        outage
	guard         *guard
	without, with *shop
	random        *rand.Rand
}

// newDemo returns a demo that begins now. The payment services hang for three tenths of it.
func newDemo(length time.Duration, drops bool, seed uint64) (*demo, error) {
	g, err := newGuard()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	o := outage{from: now.Add(length * 12 / 100), to: now.Add(length * 42 / 100)}
	return &demo{
		start: now, length: length, outage: o, guard: g,
		without: newShop(newService(o, drops), noGuard),
		with:    newShop(newService(o, drops), g.run),
		random:  rand.New(rand.NewPCG(seed, 0)),
	}, nil
}

// run opens both shops until the demo or ctx ends, and prints what one sees. It returns when all
// customers have been served.
func (d *demo) run(ctx context.Context, page string, out io.Writer) error {
	ctx, cancel := context.WithDeadline(ctx, d.start.Add(d.length))
	defer cancel()
	var parts sync.WaitGroup
	parts.Go(func() { d.guard.Monitor().Run(ctx) })
	parts.Go(func() { d.serveCustomers(ctx) })
	_, err := io.WriteString(out, head(d.snapshot(), page))
	for n := time.Duration(1); n < 10 && err == nil && sleep(ctx, time.Until(d.start.Add(n*d.length/10))); n++ {
		_, err = io.WriteString(out, row(d.snapshot()))
	}
	parts.Wait()
	_, last := io.WriteString(out, end(d.snapshot()))
	return errors.Join(err, last)
}

// close stops the payment services.
func (d *demo) close() {
	close(d.without.service.queue)
	close(d.with.service.queue)
}

// serveCustomers sends each customer to both shops, at the same time, until ctx is done.
func (d *demo) serveCustomers(ctx context.Context) {
	var customers sync.WaitGroup
	defer customers.Wait()
	next := d.start
	for {
		next = next.Add(time.Duration(d.random.ExpFloat64() * float64(time.Second) / demand))
		if late := time.Since(next); late > time.Second/10 {
			next = next.Add(late) // after a stop of the program its customers do not come at once
		}
		if !sleep(ctx, time.Until(next)) {
			return
		}
		for _, s := range []*shop{d.without, d.with} {
			customers.Go(func() { s.serve(context.WithoutCancel(ctx)) })
		}
	}
}

// sleep returns true after the time, or false as soon as ctx is done.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// snapshot is what one sees of both shops at one time.
type snapshot struct {
	start, now    time.Time
	outage        outage
	without, with figures
	opened        int         // how often the breaker has opened
	alerts        []time.Time // when the person on call was alerted
}

func (d *demo) snapshot() snapshot {
	opened, alerts := d.guard.read()
	return snapshot{
		start: d.start, now: time.Now(), outage: d.outage,
		without: d.without.read(), with: d.with.read(), opened: opened, alerts: alerts,
	}
}
