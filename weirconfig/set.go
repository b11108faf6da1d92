package weirconfig

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/weirhttp"
)

// Config has the settings that a program adds to a file, because they are not data. The zero value
// adds nothing.
type Config struct {
	// Gate is called with the name and the config of each gate, and of the gates of each group,
	// before they are made. It may set functions such as Breaker.Classify and Breaker.OnChange.
	// Default none.
	Gate func(name string, c *weir.Config)
	// Limit is called with the name and the config of each limit before it is made. It may set
	// functions, such as Answer, or When of a policy. Default none.
	Limit func(name string, c *weirhttp.LimitConfig)
	// Notify are notifiers besides the sinks of the file. Default none.
	Notify []alert.Notifier
	// Rules are alert rules besides those of the file. Default none.
	Rules []alert.Rule
	// Logger receives the alerts of sinks of kind log, and the failures of the monitor. Default
	// slog.Default().
	Logger *slog.Logger
}

// Set has the objects of a file. All methods are safe for concurrent use. The zero value does not
// work: use New.
type Set struct {
	// a pointer, so that a printed copy of a Set has its method Format, and no lock is copied
	*objects
}

// objects are the objects of a set and their configs.
type objects struct {
	config  Config
	monitor *alert.Monitor
	status  *status

	updates sync.Mutex                  // held during an update
	known   map[string]weir.GroupConfig // the last configs of all groups, also of removed ones

	mu     sync.RWMutex // guards the fields below, which change during an update
	setup  *setup
	gates  map[string]*weir.Gate
	groups map[string]*weir.Group[string]
	limits map[string]*weirhttp.Limit
}

// New makes the objects of a file. It returns an error if a function of c makes a config invalid,
// or if Notify or Rules of c are invalid together with the sinks and rules of the file.
func New(f *File, c Config) (*Set, error) {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	first, err := newSetup(f, c, nil)
	if err != nil {
		return nil, err
	}
	s := &Set{&objects{config: c, status: newStatus(f.name), known: maps.Clone(first.groups), setup: first}}
	s.gates, s.groups, s.limits = s.makeObjects(first)
	config, rules, err := first.monitorConfig(c, s.gates, s.groups)
	if err != nil {
		return nil, err
	}
	s.monitor = alert.NewMonitor(config, rules...)
	return s, nil
}

// Gate returns the gate with the name. It panics if the file has no such gate, so call it when the
// program starts.
func (s *Set) Gate(name string) *weir.Gate { return get(s, "gates", &s.gates, name) }

// Group returns the group with the name. It panics if the file has none.
func (s *Set) Group(name string) *weir.Group[string] { return get(s, "groups", &s.groups, name) }

// Limit returns the limit with the name. It panics if the file has none.
func (s *Set) Limit(name string) *weirhttp.Limit { return get(s, "limits", &s.limits, name) }

// Monitor returns the alert monitor, which evaluates nothing until its method Run is called. It has
// no rules if the file has none.
func (s *Set) Monitor() *alert.Monitor { return s.monitor }

// Sources returns everything that has metrics: gates, groups, limits, the sinks that have a
// breaker, the monitor, and the set itself, which tells whether a file was refused. After an update
// there can be more sources. Give exporters, package admin and the live page the set instead: they
// call Sources whenever they read it.
func (s *Set) Sources() []stat.Source {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sources := []stat.Source{}
	for _, name := range slices.Sorted(maps.Keys(s.gates)) {
		sources = append(sources, s.gates[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.groups)) {
		sources = append(sources, s.groups[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.limits)) {
		sources = append(sources, s.limits[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.setup.sinks)) {
		if source, ok := s.setup.sinks[name].Notifier.(stat.Source); ok {
			sources = append(sources, source)
		}
	}
	return append(sources, s.monitor, s)
}

// Format prints the name of the file, for every verb.
func (s Set) Format(f fmt.State, _ rune) {
	s.mu.RLock()
	name := s.setup.file.name
	s.mu.RUnlock()
	_, _ = io.WriteString(f, "weirconfig.Set{"+name+"}")
}

// get returns the object with the name, and panics if there is none.
func get[T any](s *Set, kind string, objects *map[string]T, name string) T {
	s.mu.RLock()
	defer s.mu.RUnlock()
	object, ok := (*objects)[name]
	if !ok {
		text := fmt.Sprintf("weirconfig: %s has no %q in %s", s.setup.file.name, name, kind)
		if near := nearestWord(name, slices.Sorted(maps.Keys(*objects))); near != "" {
			text += fmt.Sprintf(", did you mean %q?", near)
		}
		panic(text)
	}
	return object
}
