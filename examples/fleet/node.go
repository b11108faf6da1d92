package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/limiter"
)

// nodeWord is the first argument of a process of the fleet. The others are the address of Redis and
// the URL of the service.
const nodeWord = "node"

const (
	offeredRate = 30 // payments per second of one process
	totalRate   = 60 // payments per second that the limit allows all processes together
	span        = 2 * time.Second
	enoughCalls = 80 // the MinCalls of the breakers: more calls than one process makes in the span
)

// node is one process of the fleet.
type node struct {
	url     string
	out     *reporter
	shared  *fleet.Calls
	gate    *weir.Gate
	monitor *alert.Monitor
	sum     summary
	changes struct {
		sync.Mutex
		summary
	}
}

// runNode runs one process of the fleet until its parent closes its standard input.
func runNode(redisAddress, url string) error {
	signal.Ignore(os.Interrupt) // the parent handles it
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	c := newClient(redisAddress)
	defer c.Close()
	link, err := fleet.Connect(ctx, "redis", c, fleet.LinkConfig{})
	if err != nil {
		return err
	}
	n := newNode(link, url, &reporter{to: os.Stdout})
	n.work(ctx)
	return nil
}

// newNode creates the shared limit, the breaker over shared counts, and the alert.
func newNode(link *fleet.Link, url string, out *reporter) *node {
	n := &node{url: url, out: out}
	bucket := fleet.NewLimiter("payments", fleet.Config{
		Link: link, Limits: []fleet.Limit{fleet.TokenBucket{Rate: limiter.PerSecond(totalRate), Burst: 6}},
		OnOutage: fleet.FailLocal, Share: 1.0 / processes,
	})
	n.shared = fleet.NewCalls(link, "payments", fleet.CallsConfig{Span: span, Buckets: 20})
	guard := breaker.New("payments", breaker.Config{
		Window: span, Buckets: 20, MinCalls: enoughCalls, Cooldown: 500 * time.Millisecond, CooldownJitter: 0.2,
		Recovery:     breaker.Off, // the run is short
		SharedCounts: n.shared.Counts, OnChange: n.changed,
	})
	n.shared.Follow(guard)
	n.gate = weir.Join("payments", weir.Parts{Breaker: guard, Remote: bucket.Get("all")})
	n.monitor = alert.NewMonitor(
		alert.Config{
			Interval: 100 * time.Millisecond, Notify: []alert.Notifier{alert.Func("report", n.alerted)},
			// no label instance: all processes evaluate the same counts, so they have one alert
			Instance: "-",
		},
		alert.Rule{
			Name: "payments fail", Value: alert.FailureRate(n.shared, span), When: alert.Above(0.2), Resolve: alert.Below(0.1),
			MinCalls: 20, For: 200 * time.Millisecond,
		})
	return n
}

// work makes payments until the context is done, and then reports the totals.
func (n *node) work(ctx context.Context) {
	var parts sync.WaitGroup
	parts.Go(func() { _ = n.shared.Run(ctx) }) // nil when ctx ends
	parts.Go(func() { n.monitor.Run(ctx) })
	ticker := time.NewTicker(time.Second / offeredRate)
	defer ticker.Stop()
	for ctx.Err() == nil {
		n.pay(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
	parts.Wait()
	n.changes.Lock()
	defer n.changes.Unlock()
	sum := n.sum.plus(n.changes.summary)
	n.out.report(message{Sum: &sum})
}

func (n *node) pay(ctx context.Context) {
	err := n.gate.Run(ctx, n.charge)
	if ctx.Err() != nil {
		return
	}
	n.sum.Calls++
	switch {
	case errors.Is(err, breaker.ErrOpen):
		n.sum.RefusedOpen++
	case errors.Is(err, limiter.ErrLimited):
		n.sum.RefusedLimited++
	case err != nil:
		n.sum.Failed++
	default:
		n.sum.Succeeded++
	}
}

// deadline is the longest time that a payment may take.
const deadline = time.Second

func (n *node) charge(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, n.url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("payment service: %s", response.Status)
	}
	return nil
}

// changed is the function OnChange of the breaker.
func (n *node) changed(c breaker.Change) {
	n.shared.Forget() // counts from before the transition must not count after it
	n.changes.Lock()
	defer n.changes.Unlock()
	switch {
	case c.To == breaker.Closed:
		n.changes.BreakersClosed++
	case c.From == breaker.Closed && c.To == breaker.Open:
		n.changes.BreakersOpened++
	default: // do not report probes
		return
	}
	n.out.report(message{Text: fmt.Sprintf("breaker %s: %s", c.To, c.Reason)})
}

// alerted is the notifier of the monitor.
func (n *node) alerted(_ context.Context, a alert.Alert) error {
	n.out.report(message{Text: fmt.Sprintf("alert %s: %s", a.State, a.Summary), Alert: a.ID, Resolved: a.State == alert.Resolved})
	return nil
}
