package admin

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-go/weir/limiter"
	"github.com/weir-go/weir/stat"
)

// Config configures a Handler.
type Config struct {
	// Authorize returns the name of the user who sends the request, for the log and the history, or
	// an error if that user may not do the action. An empty name means that the request has no
	// valid credentials: the answer is 401, and 403 for an error with a name. A panic refuses the
	// request. Authorize is called before the body is read, from any number of goroutines. The
	// address of the client is no credential, because browsers on that machine can be made to send
	// requests. Required.
	Authorize func(r *http.Request, a Action) (user string, err error)
	// Logger gets an event for each action, each end of a timed action and each refused request.
	// For requests beyond the 32 that are served at once, it gets one event per minute at most.
	// Default slog.Default().
	Logger *slog.Logger
	// TrustedOrigins are origins such as https://ops.example.com whose pages may send actions.
	// Pages of the handler's own origin may always send them. Default none.
	TrustedOrigins []string
}

// Action describes what a request wants to do.
type Action struct {
	// Verb is force, release, reset, hold, drain, limits, silence, unsilence, test, or read for
	// requests that change nothing.
	Verb string
	// Kind and Name are the kind and the name of the object, as the request's query gives them. The
	// object may not exist. Kind may be empty. Both are empty for requests that read more than one
	// object.
	Kind, Name string
	// Key is the key of a member of a group, as text, or empty for the whole object.
	Key string
}

// Handler lists objects and acts on them. It is an [http.Handler] that expects paths without the
// prefix under which it is served: wrap it in [http.StripPrefix]. New makes handlers; the zero
// value does not work. All methods are safe for concurrent use.
type Handler struct {
	config Config
	origin *http.CrossOriginProtection
	rates  *limiter.Group[string] // of actions and readings, by user
	slots  chan struct{}          // of requests that are being served

	saidBusy atomic.Pointer[time.Time] // when a refusal without a slot was last logged

	mu      sync.Mutex
	sources []namedSource
	targets map[id]*target
}

// The bounds of the handler.
const (
	maxRequests  = 32        // served at once
	maxRate      = 10        // requests of one user per second
	maxBurst     = 40        // requests of one user at once
	maxUsers     = 1000      // whose rates are known
	maxUserBytes = 128       // of a user's name
	maxBody      = 16 * 1024 // bytes
	maxTargets   = 1000      // objects with a history or a timed action
	maxActs      = 20        // in the history of an object
	maxMembers   = 1000      // of a group in one answer
	maxReason    = 500       // bytes
	maxBusiest   = 10        // refused keys of an object
)

// New returns a handler for the sources. It leaves out sources without a name and sources that are
// no objects: docs/admin.md lists the objects. So you can pass the list of sources that your
// exporters have. New returns an error if c is invalid, if c.Authorize is nil, if a source is nil,
// or if two sources of a kind have the same name. Policies and monitors can be renamed, so New
// accepts two with the same name, and a request for that name is refused.
func New(c Config, sources ...stat.Source) (*Handler, error) {
	if c.Authorize == nil {
		return nil, errors.New("admin: Authorize is nil, must be set: no request is allowed by default")
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	h := &Handler{
		config: c, origin: http.NewCrossOriginProtection(), slots: make(chan struct{}, maxRequests), targets: map[id]*target{},
		rates: limiter.NewGroup(limiter.GroupConfig[string]{
			Rate: limiter.PerSecond(maxRate), Burst: maxBurst, MaxKeys: maxUsers, ShareNew: true,
		}),
	}
	for _, o := range c.TrustedOrigins {
		if err := h.origin.AddTrustedOrigin(o); err != nil {
			return nil, fmt.Errorf("admin: TrustedOrigins: %w", err)
		}
	}
	if err := h.Add(sources...); err != nil {
		return nil, err
	}
	return h, nil
}

// Add adds sources. It returns the errors that New returns for sources. If there is an error, it
// adds none of them. A source that the handler has already is not added again.
func (h *Handler) Add(sources ...stat.Source) error {
	added, err := identifyAll(sources) // without the lock, because it calls methods of the sources
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	all, err := addSources(h.sources, added)
	if err == nil {
		h.sources = all
	}
	return err
}

// namedSource is a source with the name that no other source may have: see identify.
type namedSource struct {
	stat.Source

	name id
}

// identifyAll returns those of the sources that are objects, with their names.
func identifyAll(sources []stat.Source) (list []namedSource, err error) {
	for i, s := range sources {
		if s == nil {
			return nil, fmt.Errorf("admin: source %d of %d is nil", i+1, len(sources))
		}
		if name, ok := identify(s); ok {
			list = append(list, namedSource{s, name})
		}
	}
	return list, nil
}

// addSources returns the old sources and the new ones.
func addSources(old, added []namedSource) ([]namedSource, error) {
	all := slices.Clip(old)
	seen := map[id]stat.Source{}
	for _, s := range old {
		seen[s.name] = s.Source
	}
	for _, s := range added {
		if slices.ContainsFunc(all, func(other namedSource) bool { return sameObject(other.Source, s.Source) }) {
			continue
		}
		if _, known := seen[s.name]; known && s.name != (id{}) {
			return nil, fmt.Errorf("admin: two different sources are the %s %.64q: each needs a name of its own", s.name.kind, s.name.name)
		}
		seen[s.name] = s.Source
		all = append(all, s)
	}
	return all, nil
}

// unnamed returns the sources without their names.
func unnamed(list []namedSource) []stat.Source {
	sources := make([]stat.Source, len(list))
	for i, s := range list {
		sources[i] = s.Source
	}
	return sources
}

// Remove removes the sources that are == to those given. Timed actions on them still end in time.
func (h *Handler) Remove(sources ...stat.Source) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var kept []namedSource
	for _, s := range h.sources {
		if !contains(sources, s.Source) {
			kept = append(kept, s)
		}
	}
	h.sources = kept
}

// ServeHTTP serves the request. Every answer is JSON.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	default:
		h.refuseBusy(w, r)
		return
	}
	answer, err := h.serve(w, r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	reply(w, http.StatusOK, answer)
}

// refuse answers and logs a request that is not served.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var f *replyError
	if !errors.As(err, &f) {
		f = &replyError{http.StatusInternalServerError, err.Error(), "", ""}
	}
	h.log(r, f)
	f.reply(w)
}

// refuseBusy answers a request for which there is no slot. It logs such a request at most once per
// minute, because there may be any number of them.
func (h *Handler) refuseBusy(w http.ResponseWriter, r *http.Request) {
	f := &replyError{
		http.StatusServiceUnavailable, fmt.Sprintf("%d requests are being served, which is the most", maxRequests),
		"Retry-After", "1",
	}
	f.reply(w)
	last := h.saidBusy.Load()
	if last != nil && time.Since(*last).Abs() < time.Minute {
		return
	}
	if now := time.Now(); h.saidBusy.CompareAndSwap(last, &now) {
		h.log(r, f)
	}
}

func (h *Handler) log(r *http.Request, f *replyError) {
	h.config.Logger.LogAttrs(r.Context(), slog.LevelWarn, "admin request refused",
		slog.String("event.name", eventRefused), slog.Int("status", f.status), slog.String("error", f.text),
		slog.String("method", truncateText(r.Method, 16)), slog.String("path", truncateText(r.URL.Path, 128)),
		slog.String("remote", truncateText(r.RemoteAddr, 64)))
}

// path returns the path of the request below the handler.
func path(r *http.Request) string { return "/" + strings.Trim(r.URL.Path, "/") }
