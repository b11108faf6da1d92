// Package settings has what guards need to implement view.Tunable.
package settings

import (
	"encoding"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/weir-go/weir/stat/view"
)

// The names of settings.
const (
	State         = "state"
	Rate          = "rate"
	Burst         = "burst"
	MaxConcurrent = "max_concurrent"
	Limit         = "limit"
	K             = "k"
	MaxRefusal    = "max_refusal"
)

var lastVersion atomic.Uint64

// NextVersion returns a version that it has not returned before.
func NextVersion() uint64 { return lastVersion.Add(1) }

// Version is the version of settings whose changes exclude each other. The zero value is that of
// settings that were never changed.
type Version struct {
	mu     sync.Mutex
	number uint32 // the lower half, which is enough for two to differ, and fits into a gap
}

// Owner is a guard whose settings have one Version. Its methods are called one at a time, and may
// not call user code.
type Owner interface {
	// ReadSettings returns the settings, without their version.
	ReadSettings() []view.Setting
	// WriteSettings sets all settings, or returns an error and sets none.
	WriteSettings(s []view.Setting) error
}

// Settings does the work of view.Tunable.Settings.
func (v *Version) Settings(o Owner) []view.Setting {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.settings(o)
}

// settings returns the settings with their version. The lock is held.
func (v *Version) settings(o Owner) []view.Setting { return With(uint64(v.number), o.ReadSettings()) }

// Set does the work of view.Tunable.Set.
func (v *Version) Set(o Owner, s []view.Setting) ([]view.Setting, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	next, err := Next(o.ReadSettings(), s)
	if err == nil {
		err = o.WriteSettings(next)
	}
	if err != nil {
		return nil, err
	}
	v.number = uint32(NextVersion())
	return Named(v.settings(o), s), nil
}

// Restore does the work of view.Tunable.Restore.
func (v *Version) Restore(o Owner, set, earlier []view.Setting) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	next, version, ok := Undo(v.settings(o), set, earlier)
	if !ok || o.WriteSettings(next) != nil {
		return false
	}
	v.number = uint32(version)
	return true
}

// Change calls change, and gives the settings a new version unless change returns an error.
func (v *Version) Change(change func() error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	err := change()
	if err == nil {
		v.number = uint32(NextVersion())
	}
	return err
}

// With returns the settings with the version.
func With(version uint64, s []view.Setting) []view.Setting {
	for i := range s {
		s[i].Version = version
	}
	return s
}

// Next returns the present settings with the values of s. It returns an error if s is empty, or has
// a name twice or one that is not present.
func Next(present, s []view.Setting) ([]view.Setting, error) {
	next := slices.Clone(present)
	if len(s) == 0 {
		return nil, errors.New("no setting is given")
	}
	for i, one := range s {
		at := index(next, one.Name)
		switch {
		case at < 0:
			return nil, fmt.Errorf("there is no setting %.64q", one.Name)
		case index(s[:i], one.Name) >= 0:
			return nil, fmt.Errorf("the setting %q is given twice", one.Name)
		}
		next[at].Value = one.Value
	}
	return next, nil
}

// Undo returns the present settings with the earlier values of those that were set, and their
// earlier version. ok is false if the present versions are not those that were set, if an earlier
// value is missing, or if nothing was set.
func Undo(present, set, earlier []view.Setting) (next []view.Setting, version uint64, ok bool) {
	next = slices.Clone(present)
	for _, one := range set {
		at, before := index(next, one.Name), index(earlier, one.Name)
		if at < 0 || before < 0 || present[at].Version != one.Version {
			return nil, 0, false
		}
		next[at].Value, version = earlier[before].Value, earlier[before].Version
	}
	return next, version, len(set) > 0
}

// Named returns those of the settings that have the names of s.
func Named(all, s []view.Setting) (named []view.Setting) {
	for _, one := range s {
		named = append(named, all[index(all, one.Name)])
	}
	return named
}

func index(s []view.Setting, name string) int {
	return slices.IndexFunc(s, func(one view.Setting) bool { return one.Name == name })
}

// Int sets *to to the value of the setting with the name, if there is one.
func Int(s []view.Setting, name string, to *int) error {
	for _, one := range s {
		if one.Name == name {
			n, err := strconv.Atoi(one.Value)
			if err != nil {
				return fmt.Errorf("%s is %.64q, must be a whole number", name, one.Value)
			}
			*to = n
		}
	}
	return nil
}

// Float is [Int] for a number.
func Float(s []view.Setting, name string, to *float64) error {
	for _, one := range s {
		if one.Name == name {
			n, err := strconv.ParseFloat(one.Value, 64)
			if err != nil {
				return fmt.Errorf("%s is %.64q, must be a number", name, one.Value)
			}
			*to = n
		}
	}
	return nil
}

// Unmarshal is [Int] for a value that reads itself.
func Unmarshal(s []view.Setting, name string, to encoding.TextUnmarshaler) error {
	for _, one := range s {
		if one.Name == name {
			if err := to.UnmarshalText([]byte(one.Value)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Number returns a number as the value of a setting.
func Number(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) }
