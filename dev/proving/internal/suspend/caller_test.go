//go:build unix

package suspend

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/weir-go/weir/dev/proving/internal/guards"
	"github.com/weir-go/weir/dev/proving/internal/sim"
)

// resultCounts counts the results that the caller got through one guard.
type resultCounts struct {
	Calls, Good, Failed, Refused int
	GoodBefore                   int // calls that ended before the process was stopped
	InFlight                     int // calls that began before it was stopped and ended after
	Openings                     int
	Gap                          time.Duration // the longest time without a tick
}

func makers() []sim.Maker {
	return slices.DeleteFunc(guards.All(), func(m sim.Maker) bool {
		return m.Name != guards.Weir && m.Name != "gobreaker"
	})
}

// callUntilStopped calls the service until some time after the process was stopped, and returns the
// exit code of the process.
func callUntilStopped(address string) int {
	fmt.Fprintln(os.Stdout, "calling")
	var group sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]resultCounts{}
	for _, m := range makers() {
		group.Go(func() {
			c := caller{address: address, guard: m.New(sim.Setting{})}
			c.call()
			mu.Lock()
			defer mu.Unlock()
			seen[m.Name] = c.sight
		})
	}
	group.Wait()
	if err := json.NewEncoder(os.Stdout).Encode(seen); err != nil {
		return 1
	}
	return 0
}

// caller calls through one guard.
type caller struct {
	address string
	guard   sim.Guard
	client  http.Client

	mu    sync.Mutex
	sight resultCounts
}

// call makes calls at a steady rate until some time after the process was stopped.
func (c *caller) call() {
	c.client.Transport = &http.Transport{MaxIdleConnsPerHost: 1000}
	ticks := time.NewTicker(time.Second / rate)
	defer ticks.Stop()
	var group sync.WaitGroup
	var goesOn time.Time
	last := time.Now()
	for time.Since(last) < time.Minute && (goesOn.IsZero() || time.Since(goesOn) < after) {
		<-ticks.C
		now := time.Now()
		if gap := now.Sub(last); gap > c.sight.Gap {
			c.mu.Lock()
			c.sight.Gap = gap
			c.mu.Unlock()
			if gap > suspended/2 {
				goesOn = now
			}
		}
		last = now
		group.Go(func() { c.callOnce(now) })
	}
	group.Wait()
	c.sight.Openings = c.guard.Openings()
}

// callOnce makes one call.
func (c *caller) callOnce(began time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := c.guard.Call(ctx, c.get)
	refused := false
	if err != nil {
		_, refused = c.guard.Refusal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sight.Calls++
	switch {
	case err == nil:
		c.sight.Good++
	case refused:
		c.sight.Refused++
	default:
		c.sight.Failed++
	}
	took := time.Since(began)
	switch {
	case took > suspended/2:
		c.sight.InFlight++
	case err == nil && c.sight.Gap < suspended/2:
		c.sight.GoodBefore++
	}
}

func (c *caller) get(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.address, http.NoBody)
	if err != nil {
		return err
	}
	response, err := c.client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}
