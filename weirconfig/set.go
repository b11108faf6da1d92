package weirconfig

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/breaker"
	"github.com/weir-go/weir/stat"
	"github.com/weir-go/weir/weirhttp"
)

// Config has what a program adds to a file, because it is not data. The zero value adds nothing.
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
	file    *File
	gates   map[string]*weir.Gate
	groups  map[string]*weir.Group[string]
	limits  map[string]*weirhttp.Limit
	sinks   []stat.Source // the breakers of sinks
	monitor *alert.Monitor
}

// New makes the objects of a file. It returns an error if a function of c makes a config invalid,
// or if Notify or Rules of c are invalid together with those of the file.
func New(f *File, c Config) (*Set, error) {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	s := &Set{
		file: f, gates: map[string]*weir.Gate{}, groups: map[string]*weir.Group[string]{}, limits: map[string]*weirhttp.Limit{},
	}
	if err := s.newGates(c); err != nil {
		return nil, err
	}
	if err := s.newLimits(c); err != nil {
		return nil, err
	}
	if err := s.newMonitor(c); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Set) newGates(c Config) error {
	for _, name := range slices.Sorted(maps.Keys(s.file.doc().Gates)) {
		gate := s.file.doc().Gates[name]
		if c.Gate != nil {
			c.Gate(name, &gate)
		}
		if err := gate.Validate(); err != nil {
			return s.refused("Gate", name)
		}
		s.gates[name] = weir.New(name, gate)
	}
	for _, name := range slices.Sorted(maps.Keys(s.file.doc().Groups)) {
		group := s.file.doc().Groups[name]
		if c.Gate != nil {
			c.Gate(name, &group.Gate)
		}
		if err := group.Validate(); err != nil {
			return s.refused("Gate", name)
		}
		s.groups[name] = weir.NewGroup[string](name, group)
	}
	return nil
}

// refused is the error for a function that made a config invalid. It does not show the values of
// the config, because they may be secret.
func (s *Set) refused(function, name string) error {
	return fmt.Errorf("weirconfig: the config of %q in %s is invalid after Config.%s has changed it: call Validate there for the reason",
		name, s.file.name, function)
}

func (s *Set) newLimits(c Config) error {
	for _, name := range slices.Sorted(maps.Keys(s.file.doc().Limits)) {
		limit := s.file.doc().Limits[name].config()
		if c.Limit != nil {
			c.Limit(name, &limit)
		}
		if err := limit.Validate(); err != nil {
			return s.refused("Limit", name)
		}
		s.limits[name] = weirhttp.NewLimit(limit)
	}
	return nil
}

func (s *Set) newMonitor(c Config) error {
	config, rules := s.file.doc().Monitor, slices.Clone(c.Rules)
	config.Logger = c.Logger
	for _, name := range slices.Sorted(maps.Keys(s.file.doc().Sinks)) {
		n := s.file.doc().Sinks[name].notifier(name, c.Logger)
		config.Notify = append(config.Notify, n)
		if b, ok := n.(interface{ Breaker() *breaker.Breaker }); ok {
			s.sinks = append(s.sinks, b.Breaker())
		}
	}
	config.Notify = append(config.Notify, c.Notify...)
	for _, r := range s.file.doc().Rules {
		rules = append(rules, r.rule(s.gates[r.Of], s.groups[r.Of]))
	}
	if err := alert.Validate(config, rules...); err != nil {
		return fmt.Errorf("weirconfig: with Config.Notify and Config.Rules: %w", err)
	}
	s.monitor = alert.NewMonitor(config, rules...)
	return nil
}

// Gate returns the gate with the name. It panics if the file has none, so call it when the program
// starts.
func (s *Set) Gate(name string) *weir.Gate { return get(s, "gates", s.gates, name) }

// Group returns the group with the name. It panics if the file has none.
func (s *Set) Group(name string) *weir.Group[string] { return get(s, "groups", s.groups, name) }

// Limit returns the limit with the name. It panics if the file has none.
func (s *Set) Limit(name string) *weirhttp.Limit { return get(s, "limits", s.limits, name) }

// Monitor returns the alert monitor, which evaluates nothing until its method Run is called. It has
// no rules if the file has none.
func (s *Set) Monitor() *alert.Monitor { return s.monitor }

// Sources returns everything that has metrics, for an exporter: gates, groups, limits, the breakers
// of sinks, and the monitor.
func (s *Set) Sources() []stat.Source {
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
	return append(append(sources, s.sinks...), s.monitor)
}

// Format prints the name of the file, for every verb.
func (s Set) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "weirconfig.Set{"+s.file.name+"}")
}

// get returns an object that the program needs.
func get[T any](s *Set, kind string, objects map[string]T, name string) T {
	object, ok := objects[name]
	if !ok {
		text := fmt.Sprintf("weirconfig: %s has no %q in %s", s.file.name, name, kind)
		if near := nearest(name, slices.Sorted(maps.Keys(objects))); near != "" {
			text += fmt.Sprintf(", did you mean %q?", near)
		}
		panic(text)
	}
	return object
}
