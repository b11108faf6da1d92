package alert

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// maxStateFile is the maximum number of bytes of a state file.
const maxStateFile = 16 << 20

// stateVersion is the first line of a state file, without the checksum. A file with another version
// counts as a foreign file.
const stateVersion = "weir-alert-state 1"

// savedState is the content of a state file.
type savedState struct {
	At        time.Time               `json:"at"` // of the latest evaluation
	Rules     map[string]savedRule    `json:"rules"`
	Alerts    []savedAlert            `json:"alerts"`
	Notifiers map[string][]savedEntry `json:"notifiers"`

	silenced map[string]bool // by alert ID; used while alerts are added
}

// savedRule holds the saved values that all alerts of a rule share.
type savedRule struct {
	Annotations map[string]string `json:"annotations,omitempty"`
	Threshold   float64           `json:"threshold"`
	Below       bool              `json:"below,omitempty"`
}

// savedAlert is a tracker.
type savedAlert struct {
	Labels     map[string]string `json:"labels"`
	Phase      phase             `json:"phase"`
	Bad        bool              `json:"bad,omitempty"`
	Silenced   bool              `json:"silenced,omitempty"` // by a silence of the monitor
	ActiveAt   time.Time         `json:"active_at,omitzero"`
	FiredAt    time.Time         `json:"fired_at,omitzero"`
	ClearedAt  time.Time         `json:"cleared_at,omitzero"`
	ResolvedAt time.Time         `json:"resolved_at,omitzero"`
	ValueName  string            `json:"value_name,omitempty"`
	Value      float64           `json:"value"`
	Calls      int64             `json:"calls,omitempty"`
	BadCalls   int64             `json:"bad_calls,omitempty"`
}

// savedEntry is an entry of the queue of a notifier.
type savedEntry struct {
	ID         string `json:"id"`
	State      State  `json:"state"`
	ToldFiring bool   `json:"told_firing,omitempty"`
	Notified   bool   `json:"notified,omitempty"`
	Held       bool   `json:"held,omitempty"`
	Due        *Alert `json:"due,omitempty"` // undelivered or in flight
}

// encode returns the content of a file: a line with the version and a checksum, and JSON.
func (s *savedState) encode() ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	content := append(fmt.Appendf(nil, "%s %x\n", stateVersion, sha256.Sum256(text)), text...)
	if len(content) > maxStateFile {
		return nil, fmt.Errorf("the state takes %d bytes, more than %d", len(content), maxStateFile)
	}
	return content, nil
}

// decodeState is the inverse of encode. It refuses everything that encode does not write.
func decodeState(content []byte) (*savedState, error) {
	if len(content) > maxStateFile {
		return nil, fmt.Errorf("it has more than %d bytes", maxStateFile)
	}
	line, text, _ := bytes.Cut(content, []byte("\n"))
	if !bytes.HasPrefix(line, []byte(stateVersion+" ")) {
		return nil, fmt.Errorf("it does not begin with %q", stateVersion)
	}
	if string(line) != fmt.Sprintf("%s %x", stateVersion, sha256.Sum256(text)) {
		return nil, errors.New("its checksum is wrong")
	}
	s := &savedState{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, err
	}
	if err := s.validate(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *savedState) validate() error {
	for _, a := range s.Alerts {
		if a.Phase >= phases || a.Labels[labelRule] == "" {
			return errors.New("an alert is not valid")
		}
	}
	for _, entries := range s.Notifiers {
		for _, e := range entries {
			if e.State != Firing && e.State != Resolved || e.Due != nil && (e.Due.ID != e.ID || e.Due.State != e.State) {
				return errors.New("an alert of a notifier is not valid")
			}
		}
	}
	return nil
}

// notStateError is the error for a file that is not a complete state file.
type notStateError struct{ error }

// readState reads a state file, and returns nil if there is none.
func readState(path string) (*savedState, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > maxStateFile:
		return nil, notStateError{fmt.Errorf("it has more than %d bytes", maxStateFile)}
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s, err := decodeState(content)
	if err != nil {
		return nil, notStateError{err}
	}
	return s, nil
}

// writeState replaces a state file. After a crash at any moment, there is the old file or the new
// one.
func writeState(path string, content []byte) error {
	next := path + ".tmp"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename in the directory durable.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // the system has no such operation
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
