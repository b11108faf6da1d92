package main

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/fleet"
	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/window"
)

// fleetUnderTest is two nodes of a fleet on a Redis that is killed and restarted.
type fleetUnderTest struct {
	faults      *faults
	dir         string
	client      *redis.Client
	began       time.Time
	nodes       [2]*node
	starts      atomic.Int64 // of Redis, which loses its data each time
	taken       atomic.Int64
	asked       atomic.Int64
	unavailable atomic.Int64 // refused because Redis was unavailable
}

// node is a node of the fleet, in this process.
type node struct {
	link    *fleet.Link
	bucket  *fleet.Limiter
	window  *fleet.Limiter
	calls   *fleet.Calls
	made    atomic.Int64
	breaker *breaker.Breaker
}

const (
	fleetRate  = 500
	fleetBurst = 50
)

// newFleet returns nil if there is no redis-server.
func newFleet(faults *faults) (*fleetUnderTest, error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, nil //nolint:nilnil // no server, no fleet
	}
	dir, err := os.MkdirTemp("", "soak")
	if err != nil {
		return nil, err
	}
	f := &fleetUnderTest{faults: faults, dir: dir, began: time.Now()}
	f.client = redis.NewClient(&redis.Options{
		Network: "unix", Addr: filepath.Join(dir, "redis.sock"), ContextTimeoutEnabled: true, MaxRetries: -1,
	})
	for i, name := range []string{"first", "second"} {
		if f.nodes[i], err = newNode(f.client, name); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func newNode(client redis.UniversalClient, name string) (*node, error) {
	link, err := fleet.Connect(context.Background(), name, client, fleet.LinkConfig{
		Timeout: time.Second, // on a busy machine an answer takes more than the default
		Breaker: breaker.Config{Cooldown: 20 * time.Millisecond},
	})
	if err != nil {
		return nil, err
	}
	n := &node{link: link, calls: fleet.NewCalls(link, "shared", fleet.CallsConfig{Span: 2 * time.Second, Interval: 50 * time.Millisecond})}
	n.bucket = fleet.NewLimiter("bucket", fleet.Config{
		Link: link, Limits: []fleet.Limit{fleet.TokenBucket{Rate: limiter.PerSecond(fleetRate), Burst: fleetBurst}}, OnOutage: fleet.FailClosed,
	})
	n.window = fleet.NewLimiter("window", fleet.Config{
		Link: link, Limits: []fleet.Limit{fleet.SlidingWindow{Limit: 100, Window: time.Second}}, OnOutage: fleet.FailClosed,
	})
	n.breaker = breaker.New("shared by "+name, breaker.Config{
		Window: time.Second, Cooldown: 50 * time.Millisecond, Recovery: 200 * time.Millisecond, SharedCounts: n.calls.Counts,
		OnChange: func(breaker.Change) { n.calls.Forget() },
	})
	n.calls.Follow(n.breaker)
	return n, nil
}

// sources returns the exported sources of the nodes.
func (f *fleetUnderTest) sources() (all []stat.Source) {
	for _, n := range f.nodes {
		all = append(all, n.link, n.breaker)
	}
	return append(all, f.nodes[0].bucket, f.nodes[0].window, f.nodes[0].calls)
}

// startRedis starts Redis and waits until it answers, for at most a minute.
func (f *fleetUnderTest) startRedis() (*exec.Cmd, error) {
	f.starts.Add(1) // before it can allow anything
	server := exec.CommandContext(context.Background(), "redis-server", "--port", "0", "--unixsocket", filepath.Join(f.dir, "redis.sock"),
		"--dir", f.dir, "--save", "", "--appendonly", "no")
	if err := server.Start(); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		err := f.client.Ping(context.Background()).Err()
		if err == nil {
			return server, nil
		}
		if time.Now().After(deadline) {
			kill(server)
			return nil, err
		}
	}
}

func kill(server *exec.Cmd) {
	_ = server.Process.Kill()
	_ = server.Wait() // it was killed
}

// runRedis kills the Redis that was started, and starts another one, until the context is done.
func (f *fleetUnderTest) runRedis(ctx context.Context, r *rand.Rand, server *exec.Cmd) {
	defer func() { _ = os.RemoveAll(f.dir) }()
	for {
		pause(ctx, time.Duration(500+r.IntN(2500))*time.Millisecond)
		kill(server)
		pause(ctx, time.Duration(r.IntN(500))*time.Millisecond)
		if ctx.Err() != nil {
			return
		}
		var err error
		if server, err = f.startRedis(); err != nil {
			f.faults.add("redis", "%v", err)
			return
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// makeRequest makes requests of a random node.
func (f *fleetUnderTest) makeRequest(ctx context.Context, r *rand.Rand) {
	n := f.nodes[r.IntN(len(f.nodes))]
	f.asked.Add(1)
	began := time.Now()
	res, err := n.bucket.Take(ctx, "one", 1)
	if took := time.Since(began); took > 15*time.Second { // the timeout of the link is 1 s
		f.faults.add("slow", "a decision took %v", took)
	}
	switch {
	case err != nil && ctx.Err() == nil:
		f.faults.add("fleet", "%v", err)
	case err == nil && res.OK:
		f.taken.Add(1)
	case err == nil && res.From == "outage":
		f.unavailable.Add(1)
	}
	if _, err := n.window.Take(ctx, "one", 1); err != nil && ctx.Err() == nil {
		f.faults.add("fleet", "%v", err)
	}
	n.made.Add(1)
	n.breaker.Run(ctx, func(context.Context) error { //nolint:errcheck // failures are counted
		if r.IntN(10) == 0 {
			return errFailed
		}
		return nil
	})
}

// audit checks the limit: Redis forgets at each start what was taken before.
func (f *fleetUnderTest) audit() {
	taken := f.taken.Load()
	if limit := float64(f.starts.Load())*fleetBurst + fleetRate*time.Since(f.began).Seconds() + 1; float64(taken) > limit {
		f.faults.add("limit", "the fleet allowed %d, at most %.0f", taken, limit)
	}
	for _, n := range f.nodes {
		if counted := callsMade(n.breaker.Totals()); counted > n.made.Load() {
			f.faults.add("counts", "%d calls ended of %d", counted, n.made.Load())
		}
	}
}

func callsMade(t window.Totals) int64 { return t.Calls() + t.Ignored + t.Refused }

// checkTotals compares the counts when no call is running any more.
func (f *fleetUnderTest) checkTotals() {
	for _, n := range f.nodes {
		if counted := callsMade(n.breaker.Totals()) + metricOf(n.breaker, "weir.breaker.late_results"); counted != n.made.Load() {
			f.faults.add("lost calls", "the fleet: %d of %d are counted", counted, n.made.Load())
		}
	}
	// A slow machine may not reach Redis at once.
	if asked := f.asked.Load(); asked > 1000 && f.taken.Load() == 0 {
		f.faults.add("fleet", "nothing was allowed of %d", asked)
	}
	_ = f.client.Close()
}
