package weirconfig

import (
	"errors"
	"fmt"
	"maps"

	"github.com/weir-go/weir"
	"github.com/weir-go/weir/weirhttp"
)

// ErrRestart matches the error of [Set.Update] for a file that changes a field that cannot change
// while the program runs.
var ErrRestart = errors.New("weirconfig: needs a restart")

// Update changes the objects to those of another file, while they are used. It validates the whole
// file first. If it returns an error, nothing has changed. If the file changes fields that cannot
// change while the program runs, the error names their lines and matches ErrRestart.
// docs/configuration.md lists these fields.
//
// Each object is switched at once: see the methods Reconfigure of [weir.Gate], [weir.Group],
// [weirhttp.Limit] and [alert.Monitor]. Objects that the file adds are made. An object that was
// removed from the file stays, and its calls in flight end, but it refuses new calls. The breakers
// of a gate or a group are forced open, also for keys without room, with an error that says that it
// was removed: see Force of [breaker.Config]. A limit allows no request. If a later file has the
// object again, it works again. The alerts of removed rules are resolved. A sink whose fields are
// the same keeps its queue.
//
// Update calls the functions of Config for the new file, as New does. Updates wait for each other.
// So functions of Config, and callbacks of the objects such as OnChange of a breaker, may call all
// methods of the set except Update, which could wait for itself. They may start it on a goroutine.
func (s *Set) Update(f *File) error {
	s.updates.Lock()
	defer s.updates.Unlock()
	return s.status.noteResult(s.update(f))
}

// update is Update with the lock held.
func (s *Set) update(f *File) error {
	next, err := newSetup(f, s.config, s.setup)
	if err != nil {
		return err
	}
	gates, groups, limits := s.makeObjects(next)
	config, rules, err := next.monitorConfig(s.config, gates, groups)
	if err != nil {
		return err
	}
	if err := next.fixedFaults(s.known, s.setup.monitor); err != nil {
		return err
	}
	err = s.closeRemoved(next)
	for name, c := range next.gates {
		err = errors.Join(err, gates[name].Reconfigure(c))
	}
	for name, c := range next.groups {
		err = errors.Join(err, groups[name].Reconfigure(c))
	}
	for name, c := range next.limits {
		err = errors.Join(err, limits[name].Reconfigure(c))
	}
	err = errors.Join(err, s.monitor.Reconfigure(config, rules...))
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.gates, gates)
	maps.Copy(s.groups, groups)
	maps.Copy(s.limits, limits)
	maps.Copy(s.known, next.groups)
	s.setup = next
	if err != nil { // impossible, because the whole file was validated
		return fmt.Errorf("weirconfig: %s is in effect, except for: %w", f.name, err)
	}
	return nil
}

// makeObjects returns the objects of the next setup: those that the set has, and new ones.
func (s *Set) makeObjects(next *setup) (
	gates map[string]*weir.Gate, groups map[string]*weir.Group[string], limits map[string]*weirhttp.Limit,
) {
	gates, groups, limits = map[string]*weir.Gate{}, map[string]*weir.Group[string]{}, map[string]*weirhttp.Limit{}
	for name, c := range next.gates {
		if gates[name] = s.gates[name]; gates[name] == nil {
			gates[name] = weir.New(name, c)
		}
	}
	for name, c := range next.groups {
		if groups[name] = s.groups[name]; groups[name] == nil {
			groups[name] = weir.NewGroup[string](name, c)
		}
	}
	for name, c := range next.limits {
		if limits[name] = s.limits[name]; limits[name] == nil {
			limits[name] = weirhttp.NewLimit(c)
		}
	}
	return gates, groups, limits
}
