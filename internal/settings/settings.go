// Package settings has what guards need to implement view.Tunable.
package settings

import (
	"encoding"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/weir-go/weir/view"
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
// settings that were never changed. No function that it calls may call user code.
type Version struct {
	mu     sync.Mutex
	number uint32 // the lower half, which is enough for two to differ, and fits into a gap
}

// Read calls read while nothing changes, and returns the version.
func (v *Version) Read(read func()) uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	read()
	return uint64(v.number)
}

// Change calls change, and gives the settings a new version unless change returns an error.
func (v *Version) Change(change func() error) (uint64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	err := change()
	if err == nil {
		v.number = uint32(NextVersion())
	}
	return uint64(v.number), err
}

// Restore calls change and returns to the earlier version, if the version is the one that was set.
// It reports whether it did.
func (v *Version) Restore(set, earlier uint64, change func()) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if uint64(v.number) != set {
		return false
	}
	change()
	v.number = uint32(earlier)
	return true
}

// With returns the settings with the version.
func With(version uint64, s []view.Setting) []view.Setting {
	s = slices.Clone(s)
	for i := range s {
		s[i].Version = version
	}
	return s
}

// Known returns an error if one of the settings has none of the names.
func Known(s []view.Setting, names ...string) error {
	for _, one := range s {
		if !slices.Contains(names, one.Name) {
			return fmt.Errorf("there is no setting %.64q, only %q", one.Name, names)
		}
	}
	return nil
}

// Text sets *to to the value of the setting with the name, if there is one.
func Text(s []view.Setting, name string, to *string) {
	for _, one := range s {
		if one.Name == name {
			*to = one.Value
		}
	}
}

// Int is [Text] for a whole number.
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

// Float is [Text] for a number.
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

// Unmarshal is [Text] for a value that reads itself.
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
