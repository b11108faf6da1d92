package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/stat"
)

// HealthConfig configures a Health. The zero value is ready to use.
type HealthConfig struct {
	// NotReady are the names of gates and breakers without which the program can serve no request
	// at all. While one of them is open or forced open, the program is not ready. Half-open does
	// not count, because without requests there would be no probes. Default none: a program that
	// leaves service together with a dependency cannot even serve its fallbacks, see
	// docs/admin.md.
	NotReady []string
	// DrainDelay is how long the program keeps serving after Drain has made it not ready, so that
	// load balancers notice, from 0 to 10m. It should be longer than the period of their checks
	// times the number of failed checks that they require. Default 5s; breaker.Off (-1) means no
	// delay.
	DrainDelay time.Duration
}

// The delay of a drain.
const (
	defaultDrainDelay = 5 * time.Second
	maxDrainDelay     = 10 * time.Minute
	drainPoll         = 20 * time.Millisecond // between looks at the calls in flight
)

// Validate returns an error that names every invalid field, or nil.
func (c HealthConfig) Validate() error {
	var errs []error
	if (c.DrainDelay < 0 && c.DrainDelay != breaker.Off) || c.DrainDelay > maxDrainDelay {
		errs = append(errs, fmt.Errorf("admin: DrainDelay is %v, must be from 0 to %v (or Off)", c.DrainDelay, maxDrainDelay))
	}
	if slices.Contains(c.NotReady, "") {
		errs = append(errs, errors.New("admin: NotReady has an empty name"))
	}
	return errors.Join(errs...)
}

// Health reports to orchestrators and load balancers whether the program is ready. It is an
// [http.Handler] that expects paths without the prefix under which it is served: wrap it in
// [http.StripPrefix]. It serves:
//
//	GET ready      200 or 503, with the causes
//	GET details    200, with the state of every object
//
// Everybody may send these requests, so the answers show names, states and numbers, but no messages
// of errors. NewHealth makes a Health; the zero value does not work. All methods are safe for
// concurrent use.
type Health struct {
	config   HealthConfig
	sources  []stat.Source
	draining atomic.Bool
}

// NewHealth returns a Health of the sources. It leaves out sources that are no objects, as New
// does. It returns the error of c.Validate, or an error if a source is nil or two sources of a kind
// have the same name. Each name of c.NotReady must be that of a gate or a breaker of the sources.
func NewHealth(c HealthConfig, sources ...stat.Source) (*Health, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	named, err := identifyAll(sources)
	if err != nil {
		return nil, err
	}
	named, err = addSources(nil, named)
	if err != nil {
		return nil, err
	}
	all := unnamed(named)
	c.NotReady = slices.Clone(c.NotReady)
	switch c.DrainDelay {
	case 0:
		c.DrainDelay = defaultDrainDelay
	case breaker.Off:
		c.DrainDelay = 0
	}
	h := &Health{config: c, sources: all}
	list := objects(all)
	for _, name := range c.NotReady {
		if !slices.ContainsFunc(list, func(o object) bool { return o.Name == name && o.State != nil && o.Members == nil }) {
			return nil, fmt.Errorf("admin: NotReady has %.64q, which is not a gate or breaker of the sources", name)
		}
	}
	return h, nil
}

// Drain takes the program out of service in steps. First it makes the program not ready, but the
// program keeps serving for DrainDelay. Then it calls the functions one after another, such as the
// Shutdown of an [http.Server], and finally it waits until no calls are in flight at the sources
// that have a bound on them. It does not wait for calls without a bound, but Shutdown waits for the
// requests that make such calls. Drain refuses no calls of gates, because the requests in progress
// need them. The program stays not ready.
//
// If ctx is done, Drain skips the rest of its waits, but still calls the functions with ctx. It
// returns the errors of the functions, and an error with the number of calls in flight if ctx was
// done before these calls ended.
func (h *Health) Drain(ctx context.Context, stop ...func(context.Context) error) error {
	h.draining.Store(true)
	sleep(ctx, h.config.DrainDelay)
	var errs []error
	for _, f := range stop {
		errs = append(errs, f(ctx))
	}
	n := h.inFlight()
	for n > 0 && ctx.Err() == nil {
		sleep(ctx, drainPoll)
		n = h.inFlight()
	}
	if n > 0 {
		errs = append(errs, fmt.Errorf("admin: %d calls are in flight: %w", n, context.Cause(ctx)))
	}
	return errors.Join(errs...)
}

// sleep returns after d, or earlier if ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 || ctx.Err() != nil {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// inFlight returns the number of calls in flight of all objects with a bound. A bound that several
// gates share counts once per gate, so the number in the error of Drain can be too high.
func (h *Health) inFlight() (n int) {
	for _, o := range objects(h.sources) {
		if o.Bound != nil {
			calls, _, _ := o.Bound()
			n += calls
		}
	}
	return n
}

// readiness is the answer to GET ready.
type readiness struct {
	Ready  bool     `json:"ready"`
	Causes []string `json:"causes,omitempty"`
}

func (h *Health) readiness() readiness {
	var causes []string
	if h.draining.Load() {
		causes = append(causes, "the program is shutting down")
	}
	for _, o := range objects(h.sources) {
		if o.State == nil || o.Members != nil || !slices.Contains(h.config.NotReady, o.Name) {
			continue
		}
		if s := breaker.State(o.State()); s == breaker.Open || s == breaker.ForcedOpen {
			causes = append(causes, fmt.Sprintf("%s %q is %s", o.Kind, o.Name, s))
		}
	}
	return readiness{len(causes) == 0, causes}
}

// ServeHTTP serves the request.
func (h *Health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		reply(w, http.StatusMethodNotAllowed, problem{truncateText(r.Method, 16) + " is not allowed, must be GET", http.StatusMethodNotAllowed})
		return
	}
	switch path(r) {
	case "/ready":
		ready, status := h.readiness(), http.StatusOK
		if !ready.Ready {
			status = http.StatusServiceUnavailable
		}
		reply(w, status, ready)
	case "/details":
		reply(w, http.StatusOK, h.healthDetails())
	default:
		reply(w, http.StatusNotFound, problem{fmt.Sprintf("there is no path %.64q, only /ready and /details", path(r)), http.StatusNotFound})
	}
}
