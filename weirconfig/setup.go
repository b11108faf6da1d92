package weirconfig

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/alert"
	"github.com/weir-go/weir/weirhttp"
)

// setup holds the configs from which the objects of a set are built: those of a file, after the
// functions of Config have changed them.
type setup struct {
	file    *File
	gates   map[string]weir.Config
	groups  map[string]weir.GroupConfig
	limits  map[string]weirhttp.LimitConfig
	sinks   map[string]notifier
	monitor alert.Config // without Notify, which follows from sinks
}

// notifier is the notifier of a sink, with the config that it was made of.
type notifier struct {
	alert.Notifier
	sink sink
}

// newSetup returns the setup for a file. A sink whose fields are the same as in the old setup keeps
// its notifier.
func newSetup(f *File, c Config, old *setup) (*setup, error) {
	doc := f.doc()
	next := &setup{
		file: f, gates: map[string]weir.Config{}, groups: map[string]weir.GroupConfig{}, limits: map[string]weirhttp.LimitConfig{},
		sinks: map[string]notifier{}, monitor: doc.Monitor,
	}
	next.monitor.Logger = c.Logger
	for _, name := range slices.Sorted(maps.Keys(doc.Gates)) {
		gate := doc.Gates[name]
		if c.Gate != nil {
			c.Gate(name, &gate)
		}
		if err := gate.Validate(); err != nil {
			return nil, f.invalidConfigError("Gate", name)
		}
		next.gates[name] = gate
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Groups)) {
		group := doc.Groups[name]
		if c.Gate != nil {
			c.Gate(name, &group.Gate)
		}
		if err := group.Validate(); err != nil {
			return nil, f.invalidConfigError("Gate", name)
		}
		next.groups[name] = group
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Limits)) {
		limit := doc.Limits[name].config()
		if c.Limit != nil {
			c.Limit(name, &limit)
		}
		if err := limit.Validate(); err != nil {
			return nil, f.invalidConfigError("Limit", name)
		}
		next.limits[name] = limit
	}
	for name, s := range doc.Sinks {
		if old != nil && reflect.DeepEqual(old.sinks[name].sink, s) {
			next.sinks[name] = old.sinks[name]
			continue
		}
		next.sinks[name] = notifier{s.notifier(name, c.Logger), s}
	}
	return next, nil
}

// invalidConfigError returns the error for a function that made a config invalid. It does not show
// the values of the config, because they may be secret.
func (f File) invalidConfigError(function, name string) error {
	return fmt.Errorf("weirconfig: the config of %q in %s is invalid after Config.%s has changed it: call Validate there for the reason",
		name, f.name, function)
}

// monitorConfig returns the config of the monitor and its rules over the given objects.
func (s *setup) monitorConfig(
	c Config, gates map[string]*weir.Gate, groups map[string]*weir.Group[string],
) (alert.Config, []alert.Rule, error) {
	config, rules := s.monitor, slices.Clone(c.Rules)
	for _, name := range slices.Sorted(maps.Keys(s.sinks)) {
		config.Notify = append(config.Notify, s.sinks[name].Notifier)
	}
	config.Notify = append(config.Notify, c.Notify...)
	for _, r := range s.file.doc().Rules {
		rules = append(rules, r.rule(gates[r.Of], groups[r.Of]))
	}
	if err := config.Validate(rules...); err != nil {
		return config, rules, fmt.Errorf("weirconfig: with Config.Notify and Config.Rules: %w", err)
	}
	return config, rules, nil
}

// newWindowFields lists the fields of a gate whose change makes its breaker begin a new window. The
// breaker does not judge the calls before the change any more.
var newWindowFields = []string{"breaker.window", "breaker.buckets", "breaker.last_calls", "breaker.latency", "breaker.force"}

// fixedField is a field that cannot change while the program runs.
type fixedField[C any] struct {
	key     string // below its object
	meaning string // when it counts as changed
	differ  func(a, b C) bool
}

var fixedGroupFields = []fixedField[weir.GroupConfig]{
	{"max_keys", "", func(a, b weir.GroupConfig) bool { return a.MaxKeys != b.MaxKeys }},
	{"max_series", "", func(a, b weir.GroupConfig) bool { return a.MaxSeries != b.MaxSeries }},
}

var fixedMonitorFields = []fixedField[alert.Config]{
	{"state_file", "", func(a, b alert.Config) bool { return a.StateFile != b.StateFile }},
}

// fixedFaults returns an error that names the fields that have changed although they cannot change
// while the program runs. The arguments are the last configs of all groups and the last config of
// the monitor.
func (s *setup) fixedFaults(groups map[string]weir.GroupConfig, monitor alert.Config) error {
	var faults []error
	fault := func(path, key string) {
		faults = append(faults, fmt.Errorf("%s: %s: %s has changed: %w", s.file.placeOf(path, key), path, key, ErrRestart))
	}
	for _, name := range slices.Sorted(maps.Keys(s.groups)) {
		old, had := groups[name]
		for _, f := range fixedGroupFields {
			if had && f.differ(old, s.groups[name]) {
				fault("groups."+quotedKey(name), f.key)
			}
		}
	}
	for _, f := range fixedMonitorFields {
		if f.differ(monitor, s.monitor) {
			fault("monitor", f.key)
		}
	}
	return errors.Join(faults...)
}
